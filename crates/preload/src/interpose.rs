//! From hooks to exported symbols.
//!
//! [`interpose!`](crate::interpose!) belongs into the root of a `cdylib` and appears there once.
//!
//! The `exec` functions are exported as stubs that save the argument registers, tell the hooks, and *jump* to
//! the real function: with variadic ones (`execl`) there is no other way to hand the arguments on, and nothing
//! is to be done after a success anyway.

/// Exports every function of the table, the `exec` family, and the start and end of the library.
#[macro_export]
macro_rules! interpose {
    ($hooks:ty) => {
        #[doc(hidden)]
        #[allow(missing_docs, non_snake_case, clippy::missing_safety_doc)]
        pub mod farsight_exports {
            use super::*;
            use $crate::abi::*;
            type TheHooks = $hooks;

            $crate::symbol_table!([$crate::interpose_export] TheHooks;);
            $crate::interpose_exec!(TheHooks; execve execv execvp execvpe execl execlp execle fexecve execveat);

            extern "C" fn begin() {
                $crate::process::start::<TheHooks>();
            }
            extern "C" fn end() {
                $crate::process::ending::<TheHooks>($crate::Ending::Exit);
            }
            #[used]
            #[unsafe(link_section = ".init_array")]
            static BEGIN: extern "C" fn() = begin;
            #[used]
            #[unsafe(link_section = ".fini_array")]
            static END: extern "C" fn() = end;
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! interpose_export {
    ($hooks:ident; $(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
                // SAFETY: the program calls the C function of that name and keeps its contract.
                unsafe { $crate::wrap::$name::<$hooks>($($arg),*) }
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! interpose_exec {
    ($hooks:ident; $($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                extern "C" fn before(first: Ptr, second: Ptr, third: Ptr) -> Ptr {
                    static SLOT: $crate::real::Slot = $crate::real::Slot::new();
                    $crate::process::executing::<$hooks>(stringify!($name), [first, second, third]);
                    $crate::process::ending::<$hooks>($crate::Ending::Exec);
                    const NAME: &core::ffi::CStr =
                        match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                            Ok(name) => name,
                            Err(_) => c"",
                        };
                    SLOT.get(NAME)
                }
                // rsp is 8 off a multiple of 16 here; seven pushes make it right for the call. The arguments are still
                // in their registers.
                core::arch::naked_asm!(
                    ".cfi_startproc",
                    "push rdi", ".cfi_adjust_cfa_offset 8",
                    "push rsi", ".cfi_adjust_cfa_offset 8",
                    "push rdx", ".cfi_adjust_cfa_offset 8",
                    "push rcx", ".cfi_adjust_cfa_offset 8",
                    "push r8", ".cfi_adjust_cfa_offset 8",
                    "push r9", ".cfi_adjust_cfa_offset 8",
                    "push rax", ".cfi_adjust_cfa_offset 8",
                    "call {before}",
                    "mov r11, rax",
                    "pop rax", ".cfi_adjust_cfa_offset -8",
                    "pop r9", ".cfi_adjust_cfa_offset -8",
                    "pop r8", ".cfi_adjust_cfa_offset -8",
                    "pop rcx", ".cfi_adjust_cfa_offset -8",
                    "pop rdx", ".cfi_adjust_cfa_offset -8",
                    "pop rsi", ".cfi_adjust_cfa_offset -8",
                    "pop rdi", ".cfi_adjust_cfa_offset -8",
                    "jmp r11",
                    ".cfi_endproc",
                    before = sym before,
                )
            }
        )*
    };
}
