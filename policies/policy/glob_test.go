package policy

import "testing"

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"main", "main", true},
		{"main", "main2", false},
		{"main", "xmain", false},
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "a.b-c", true},
		{"*", "a/b", false},
		{"a*c", "abbc", true},
		{"a*c", "ab/c", false},
		{"?", "x", true},
		{"?", "é", true},
		{"?", "/", false},
		{"?", "", false},
		{"**", "", true},
		{"**", "a/b/c", true},
		{"**", "a\nb", true},
		{"a/**", "a/b/c", true},
		{"a/**", "a", false},
		{"a/**", "ab/c", false},
		{"**/c", "c", true},
		{"**/c", "a/b/c", true},
		{"**/c", "a/bc", false},
		{"a/**/c", "a/c", true},
		{"a/**/c", "a/x/y/c", true},
		{"a/**/c", "ac", false},
		{"a**c", "a/b/c", true},
		{"***", "a/b", true},
		{"*.cu", "x.cu", true},
		{"*.cu", "xxcu", false},
		{"a+b(c)$", "a+b(c)$", true},
		{"a+b", "aab", false},
		{"größe", "größe", true},
		{"gr*e", "größe", true},
		{"a\xffb", "a\ufffdb", true},
	} {
		if got := anyGlob([]string{tt.pattern}, tt.name); got != tt.want {
			t.Errorf("anyGlob(%q, %q) is %v", tt.pattern, tt.name, got)
		}
	}
}
