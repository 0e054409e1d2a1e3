// What the build puts into the code.

/** Whether the module is the whole one, with topology and tunnel, and not that of the lite entry. */
declare const IS_WHOLE: boolean;
