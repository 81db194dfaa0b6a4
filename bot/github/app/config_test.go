package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/serve"
)

// TestConfig checks that the bot can read the configuration, for folders with unusual names, too,
// and that it uses the wording of the example.
func TestConfig(t *testing.T) {
	t.Parallel()
	made := app{ID: 7, Slug: "gate", HTMLURL: "https://github.com/apps/gate", PEM: "key", WebhookSecret: strings.Repeat("s", 40)}
	for _, tt := range []struct{ github, dir, api string }{
		{"https://github.com", "etc", ""},
		{"https://github.example.com", "it's: a #folder", "https://github.example.com/api/v3"},
		{"https://acme.ghe.com", "-", "https://api.acme.ghe.com"},
	} {
		t.Run(tt.github, func(t *testing.T) {
			j, err := newJob(Options{URL: "https://gate.example.com/kg/", GitHub: tt.github, Dir: filepath.Join(t.TempDir(), tt.dir)})
			if err != nil {
				t.Fatal(err)
			}
			files, err := j.files(made)
			if err != nil {
				t.Fatal(err)
			}
			if err := writeAll(j.dir, files, false); err != nil {
				t.Fatal(err)
			}
			none := func(string) string { return "" }
			c, err := serve.Load(serve.Sources{File: filepath.Join(j.dir, configFile), Getenv: none})
			if err != nil {
				t.Fatal(err)
			}
			if c.URL != "https://gate.example.com/kg" || c.GitHub.AppID != 7 || c.GitHub.APIURL != tt.api || !c.Runner.Local {
				t.Errorf("it is understood as %+v", c)
			}
			secrets, err := c.ReadSecrets(none, func(text string) { t.Error(text) })
			if err != nil || string(secrets.PrivateKey) != made.PEM || string(secrets.Webhooks[0]) != made.WebhookSecret {
				t.Errorf("the secrets: %v", err)
			}
			example, err := os.ReadFile("../../install/kernelgate.example.yaml")
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range regexp.MustCompile(`(?m)^ *[a-z_]+:`).FindAllString(string(files[2].text), -1) {
				if !strings.Contains(string(example), strings.TrimSpace(key)) {
					t.Errorf("the example has no %s", key)
				}
			}
		})
	}
}
