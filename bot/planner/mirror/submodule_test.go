package mirror

import (
	"context"
	"errors"
	"testing"

	"github.com/kernelgate/kernelgate/policies/ident"
)

type hub string

func (h hub) CloneURL(repo string) string { return string(h) + repo + ".git" }
func (hub) GitCredential(context.Context, string) (string, string, error) {
	return "", "", nil
}

// TestNamed checks that a URL names a repository on the same host, or is refused.
func TestNamed(t *testing.T) {
	for _, c := range []struct{ hub, address, want string }{
		{"https://github.com/", "../lib", "o/lib"},
		{"https://github.com/", "../lib.git", "o/lib"},
		{"https://github.com/", "../../other/lib.git/", "other/lib"},
		{"https://github.com/", "https://GitHub.com/a/b", "a/b"},
		{"https://github.com/", "http://github.com/a/b.git", "a/b"},
		{"https://github.com/", "git@github.com:a/b.git", "a/b"},
		{"https://github.com/", "ssh://git@github.com:22/a/b.git", "a/b"},
		{"https://git.example.com/hub/", "https://git.example.com/hub/a/b", "a/b"},
		{"https://git.example.com/hub/", "git@git.example.com:a/b", "a/b"},
		{"https://git.example.com/hub/", "https://git.example.com/a/b", ""},
		{"https://git.example.com:8443/", "https://git.example.com:9443/a/b", ""},
		{"https://github.com/", "", ""},
		{"https://github.com/", "./", "o/r"},
		{"https://github.com/", "../..", ""},
		{"https://github.com/", "../../../x/y", "x/y"}, /* there is nothing above the host */
		{"https://github.com/", "https://github.com.evil.example/a/b", ""},
		{"https://github.com/", "https://github.com@evil.example/a/b", ""},
		{"https://github.com/", "https://github.com/a/b/c", ""},
		{"https://github.com/", "https://github.com/a/%2e%2e", ""},
		{"https://github.com/", "--upload-pack=touch /tmp/x", ""},
		{"https://github.com/", "ext::sh -c id", ""},
		{"https://github.com/", "file://github.com/a/b", ""},
	} {
		got, err := (&Store{Origin: hub(c.hub)}).named("o/r", c.address)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q at %s is %q (%v), want %q", c.address, c.hub, got, err, c.want)
		}
	}
}

func FuzzNamed(f *testing.F) {
	for _, address := range []string{"../lib.git", "https://github.com/a/b", "git@github.com:a/b.git", "ssh://git@github.com/a/b", "file:///etc", "a:b@c:d", "://", "https://[::1"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		got, err := (&Store{Origin: hub("https://github.com/")}).named("o/r", address)
		var refused Unreadable
		if err == nil && !ident.IsRepository(got) || err != nil && !errors.As(err, &refused) {
			t.Errorf("%q is %q (%v)", address, got, err)
		}
	})
}
