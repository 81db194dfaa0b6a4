package manifest

import "testing"

// A name has the language that compilers give it everywhere, or none.
func TestLanguage(t *testing.T) {
	for name, want := range map[string]string{
		"k.c": "c", "sub/k.c": "c", "k.cc": "c++", "k.cpp": "c++", "k.cxx": "c++", "k.c++": "c++",
		"k.C": "", "k.CPP": "", "k.cp": "", "k.cu": "", "k.S": "", "k.s": "", "k.i": "", "k.ii": "", "k.h": "", "k.hpp": "", "k.inc": "", "k.m": "", "k": "", "k.c.txt": "", "k.o": "", "k.ld": "",
	} {
		if got, ok := Language(name); got != want || ok != (want != "") {
			t.Errorf("%s is %q (%v), want %q", name, got, ok, want)
		}
	}
}
