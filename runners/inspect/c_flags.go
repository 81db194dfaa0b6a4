package inspect

import (
	"strings"

	"github.com/kernelgate/kernelgate/policies"
)

// A C is a sanitizer of the C compiler: what it is switched on with, and how it is
// told to behave.
type C struct {
	checks string // as -fsanitize takes them
	flags  []string
}

// ForC is the compiler's part in a tool's name; the version is the first line of
// the compiler's --version. gcc has nothing for initcheck, and synccheck has
// nothing to look for in a kernel with one thread.
func ForC(tool policies.Sanitizer, version string) (C, bool) {
	clang := strings.Contains(version, "clang")
	switch tool {
	case policies.Memcheck:
		return C{checks: "address,undefined", flags: []string{"-fno-sanitize-recover=all"}}, true
	case policies.Racecheck:
		return C{checks: "thread"}, true
	case policies.Initcheck:
		return C{checks: "memory", flags: []string{"-fsanitize-memory-track-origins", "-fno-sanitize-recover=all"}}, clang
	}
	return C{}, false
}

// Flag is how people know it.
func (c C) Flag() string { return "-fsanitize=" + c.checks }

// Flags go behind the kernel's own, so that they win. The macros by which code
// knows that it is watched are taken away, and the attributes by which a function
// asks not to be: a kernel must not be another one here by accident. Whoever means
// to deceive a sanitizer within his own process can; no other gate relies on it.
func (c C) Flags() []string {
	flags := []string{c.Flag(), "-g", "-fno-omit-frame-pointer", "-U__SANITIZE_ADDRESS__", "-U__SANITIZE_THREAD__", "-Dno_sanitize(...)=unused"}
	for _, name := range []string{"address", "thread", "undefined", "memory"} {
		flags = append(flags, "-Dno_sanitize_"+name+"=unused")
	}
	return append(flags, c.flags...)
}

// Env is the sanitizers' settings. Leaks are not looked for: that needs ptrace,
// which a sandbox has not. Everything ends the process with a status of its own, and
// wide red zones see an access far beyond an array too.
func (c C) Env() []string {
	const all = "exitcode=86:color=never:print_summary=0:handle_abort=1:symbolize=1:log_path=stderr"
	return []string{
		"ASAN_OPTIONS=" + all + ":detect_leaks=0:halt_on_error=1:redzone=2048:max_redzone=2048:detect_stack_use_after_return=1:strict_string_checks=1",
		"UBSAN_OPTIONS=" + all + ":halt_on_error=1:print_stacktrace=0",
		"TSAN_OPTIONS=" + all + ":halt_on_error=1",
		"MSAN_OPTIONS=" + all + ":halt_on_error=1",
	}
}
