package client

import "testing"

func TestAddresses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ base, git, api, clone string }{
		"nothing given":        {"", "", "https://api.github.com/", "https://github.com/a/b.git"},
		"the web's address":    {"https://github.com/", "", "https://api.github.com/", "https://github.com/a/b.git"},
		"the API's address":    {"https://api.github.com", "", "https://api.github.com/", "https://github.com/a/b.git"},
		"enterprise":           {"https://git.example.com", "", "https://git.example.com/api/v3/", "https://git.example.com/a/b.git"},
		"enterprise's API":     {"https://Git.example.com:8443/api/v3/", "", "https://git.example.com:8443/api/v3/", "https://git.example.com:8443/a/b.git"},
		"enterprise named api": {"https://api.example.com/api/v3", "", "https://api.example.com/api/v3/", "https://api.example.com/a/b.git"},
		"host alone":           {"git.example.com", "", "https://git.example.com/api/v3/", "https://git.example.com/a/b.git"},
		"data residency":       {"https://octo.ghe.com", "", "https://api.octo.ghe.com/", "https://octo.ghe.com/a/b.git"},
		"its API":              {"https://api.octo.ghe.com", "", "https://api.octo.ghe.com/", "https://octo.ghe.com/a/b.git"},
		"git elsewhere":        {"", "http://mirror:80/", "https://api.github.com/", "http://mirror:80/a/b.git"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := NewToken("t", Options{BaseURL: tt.base, GitURL: tt.git})
			if err != nil {
				t.Fatal(err)
			}
			if h.api.String() != tt.api || h.CloneURL("a/b") != tt.clone {
				t.Errorf("got %s and %s, want %s and %s", h.api, h.CloneURL("a/b"), tt.api, tt.clone)
			}
		})
	}
	for _, bad := range []string{"https://x/y", "https://u:p@x", "https://x?y", "file:///x", "https://"} {
		if _, _, err := Addresses(bad, ""); err == nil {
			t.Errorf("%s is taken for GitHub", bad)
		}
	}
}

func TestRepositoryNamesCannotLeaveTheirPlace(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "a", "a/", "/b", "a/b/c", "a/..", "../b", "a/b?c", "a/b%2f", "a b/c"} {
		if _, _, err := splitRepo(bad); err == nil {
			t.Errorf("%q is taken for a repository", bad)
		}
	}
	if owner, name, err := splitRepo("a-1/b.c_d"); err != nil || owner != "a-1" || name != "b.c_d" {
		t.Errorf("got %q, %q, %v", owner, name, err)
	}
}
