package toolchain

import "testing"

func TestShortName(t *testing.T) {
	for _, test := range []struct{ name, mangled, want string }{
		{"function", "_Z4sdpaPKhPKiPfd", "sdpa"},
		{"extern C", "spill", "spill"},
		{"template", "_Z5scaleILi64EfEvPT0_f", "scale"},
		{"in a namespace", "_ZN4attn4sdpaEPf", "sdpa"},
		{"template in a namespace", "_ZN4attn5scaleILi64EfEEvPT0_f", "scale"},
		{"in a class template", "_ZN4TileILi64EN3cub4SumTEE3runEPf", "run"},
		{"in the unnamed namespace", "_ZN12_GLOBAL__N_14sdpaEPf", "sdpa"},
		{"static", "_ZL4sdpaPf", "sdpa"},
		{"arguments with substitutions", "_ZN4attn4TileINS_3RowES1_E3runEv", "run"},
		{"pack", "_ZN1AIJifEE1fEv", "f"},
		{"clone of relocatable code", "_Z6gatherPKfi$1", "gather"},
		{"expression: whole", "_ZN1AIXadL_Z1gvEEE1fEv", "_ZN1AIXadL_Z1gvEEE1fEv"},
		{"array argument: whole", "_ZN1AIA4_iE1fEv", "_ZN1AIA4_iE1fEv"},
		{"enumerator: whole", "_ZN1AILN1B1CE1EE1fEv", "_ZN1AILN1B1CE1EE1fEv"},
		{"operator: whole", "_ZN1AplEv", "_ZN1AplEv"},
		{"length beyond the end", "_Z99sdpa", "_Z99sdpa"},
		{"length zero", "_Z0sdpa", "_Z0sdpa"},
		{"length overflows", "_Z99999999999999999999sdpa", "_Z99999999999999999999sdpa"},
		{"nothing after _Z", "_Z", "_Z"},
		{"nested, cut short", "_ZN4attn", "_ZN4attn"},
		{"arguments, cut short", "_ZN1AILi", "_ZN1AILi"},
		{"empty", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := shortName(test.mangled); got != test.want {
				t.Errorf("shortName(%q) = %q, want %q", test.mangled, got, test.want)
			}
		})
	}
}
