package manifest

import (
	"regexp"
	"strings"
	"testing"
)

func TestEntries(t *testing.T) {
	for text, want := range map[string]struct{ key, address, signature string }{
		"sdpa":                          {"sdpa", "&::sdpa", ""},
		"_Z5scalePfPKfi":                {"_Z5scalePfPKfi", "&::_Z5scalePfPKfi", ""},
		"ns::kernel":                    {"ns::kernel", "&::ns::kernel", ""},
		"::ns::kernel":                  {"ns::kernel", "&::ns::kernel", ""},
		" attention < 64 , true > ":     {"attention<64,true>", "&::attention<64, true>", ""},
		"f<0x40u, -1, false>":           {"f<64,-1,false>", "&::f<0x40u, -1, false>", ""},
		"f<>":                           {"f<>", "&::f<>", ""},
		"f()":                           {"f()", "&::f", "void (*)()"},
		"f(void)":                       {"f()", "&::f", "void (*)()"},
		"f(const float* __restrict__)":  {"f(float const*)", "&::f", "void (*)(float const*)"},
		"f(unsigned, long long int)":    {"f(unsigned int,long long)", "&::f", "void (*)(unsigned int, long long)"},
		"a::b<c<1>>::d<e>(g::h<2>&, i)": {"a::b<c<1>>::d<e>(g::h<2>&,i)", "&::a::b<c<1>>::d<e>", "void (*)(g::h<2>&, i)"},
		"f(int *const *)":               {"f(int* const*)", "&::f", "void (*)(int* const*)"},
	} {
		e, err := ParseEntry(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if e.Key() != want.key || e.Address() != want.address || e.Signature() != want.signature {
			t.Errorf("%q: %q, %q, %q, want %q, %q, %q", text, e.Key(), e.Address(), e.Signature(), want.key, want.address, want.signature)
		}
	}
}

func TestEntriesThatAreCode(t *testing.T) {
	for _, text := range []string{
		"", "1", "f;", "f{}", "f<64", "f<64>>", "f(", "f)", "f(,)", "f(int,)", "f(int x, int)", "a::", "a:::b", "f<sizeof(int)>", "f<decltype(g)>", "f<1 + 1>", "f<(1)>", "f<g()>",
		"f<operator>", "f(void (*)(int))", "f\"x\"", "f\\\nx", "#include", "f<'a'>", "f<1.5>", "f = g", "f<template>", "f<09>", "f<99999999999999999999>", "f(int int)", "f(const const int)",
		"asm", "f<asm>", "f<new>", "f /* */", "f // x", "f<%:>", "template f", "f(int...)", "f[2]", "~f", "f<a b>", "f<*a>", "f<&a>", strings.Repeat("a", 4097), strings.Repeat("a<", 70) + strings.Repeat(">", 70),
	} {
		if e, err := ParseEntry(text); err == nil {
			t.Errorf("%.40q is taken for the entry %.40q", text, e.Key())
		} else if !strings.Contains(err.Error(), "(write ") {
			t.Errorf("%.40q: the message says not what to write: %v", text, err)
		}
	}
}

// Whatever is taken for an entry is written as names, integers, types and marks, balanced, in one line.
func FuzzEntry(f *testing.F) {
	for _, seed := range []string{"sdpa", "a::b<c<1>>::d<e, -2u>(g::h<2>&, const int*)", "f(", "f<;>", "f<>\n()"} {
		f.Add(seed)
	}
	harmless := regexp.MustCompile(`^&::[A-Za-z0-9_$:<>,*& -]+$`)
	list := regexp.MustCompile(`^(void \(\*\)\([A-Za-z0-9_$:<>,*& -]*\))?$`)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEntry(text)
		if err != nil {
			return
		}
		if !harmless.MatchString(e.Address()) || !list.MatchString(e.Signature()) {
			t.Fatalf("%q is written %q, %q", text, e.Address(), e.Signature())
		}
		for _, part := range []string{e.Address(), e.Signature()} {
			if strings.Count(part, "<") != strings.Count(part, ">") {
				t.Fatalf("%q is written %q", text, part)
			}
			for _, word := range regexp.MustCompile(`[A-Za-z_$][\w$]*`).FindAllString(part, -1) {
				switch word {
				case "asm", "sizeof", "decltype", "operator", "new", "delete", "template", "typename", "return", "goto", "throw", "static_assert":
					t.Fatalf("%q has the word %s", part, word)
				}
			}
		}
		again, err := ParseEntry(strings.TrimPrefix(e.Address(), "&"))
		if err != nil || !strings.HasPrefix(e.Key(), again.Key()) {
			t.Fatalf("%q, read again: %q, %v", e.Address(), again.Key(), err)
		}
	})
}
