package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/runners/work/doctor"
)

// TestDoctorOnIssues checks that doctor says whether the App may write the issues of watched kernels. If it
// may not, doctor names the account that has to accept the permission.
func TestDoctorOnIssues(t *testing.T) {
	hub, err := embedded.New(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hub.Close() })
	config := func(slug string, may map[string]string) serve.Config {
		t.Helper()
		app, err := hub.CreateApp(embedded.AppOptions{Slug: slug, Permissions: may})
		if err != nil {
			t.Fatal(err)
		}
		repo, err := hub.CreateRepo(embedded.RepoOptions{Owner: "org-of-" + slug, Name: "kernels"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := app.Install(repo); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "key.pem")
		if err := os.WriteFile(file, app.PrivateKeyPEM(), 0o600); err != nil {
			t.Fatal(err)
		}
		return serve.Config{GitHub: serve.GitHub{AppID: app.ID(), PrivateKeyFile: file, APIURL: hub.URL() + "/api/v3", GitURL: hub.URL(), WebhookSecretFile: serve.Words{secretFile(t)}}}
	}
	unknown := config("other", nil)
	unknown.GitHub.AppID = 999
	for name, c := range map[string]struct {
		config serve.Config
		status doctor.Status
		detail string
	}{
		"allowed": {config("able", nil), doctor.OK, "the App may write the issues of watched kernels"},
		"refused": {config("mute", map[string]string{"metadata": "read", "issues": "read"}), doctor.Warn, "watch must write issues, and the App may not write issues of org-of-mute"},
		"unknown": {unknown, doctor.Warn, "cannot ask GitHub: list the App's installations: GitHub answered 404: Integration not found"},
		"no file": {serve.Config{GitHub: serve.GitHub{AppID: 1, PrivateKeyFile: "/no/such/file"}}, doctor.Warn, "cannot ask GitHub: "},
		"a token": {serve.Config{GitHub: serve.GitHub{TokenFile: secretFile(t), WebhookSecretFile: serve.Words{secretFile(t)}}}, doctor.Warn, "a token does not say whether it may write issues"},
	} {
		f := issuesFinding(t.Context(), c.config)
		if f.Status != c.status || !strings.HasPrefix(f.Detail, c.detail) || (f.Remedy == "") != (c.status == doctor.OK) {
			t.Errorf("%s: %+v, want %s %q", name, f, c.status, c.detail)
		}
	}
}

// secretFile holds a secret that is long enough.
func secretFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(strings.Repeat("secret", 10)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
