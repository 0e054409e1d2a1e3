//! Makes the WASM library usable for JavaScript: `bindgen FILE.wasm FOLDER`.

#![forbid(unsafe_code)]

fn main() {
    #[cfg(not(target_family = "wasm"))]
    {
        let mut arguments = std::env::args_os().skip(1);
        let (Some(input), Some(folder)) = (arguments.next(), arguments.next()) else {
            panic!("bindgen FILE.wasm FOLDER");
        };
        let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
        let made = bindgen.input_path(input).web(true).and_then(|it| {
            it.typescript(false);
            it.out_name("program");
            it.generate(folder)
        });
        made.expect("the library can be made usable");
    }
}
