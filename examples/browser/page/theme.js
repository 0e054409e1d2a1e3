// Light or dark: as the system says, until the button says otherwise.

import { byId } from "./element.js";

export function chooseTheme() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const use = (scheme) => { root.style.colorScheme = scheme ?? ""; };
  use(localStorage.getItem("scheme"));
  byId("theme").addEventListener("click", () => {
    const isDark = root.style.colorScheme ? root.style.colorScheme === "dark" : dark.matches;
    const scheme = isDark ? "light" : "dark";
    localStorage.setItem("scheme", scheme);
    use(scheme);
  });
}
