package serve_test

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/usage"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const good = `github:
  app_id: 7
  private_key_file: /k/key.pem
  webhook_secret_file: /k/hook
`

// load reads text as kernelgate.yaml.
func load(t testing.TB, text string, env, flags map[string]string) (serve.Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	file := ""
	if text != "" {
		file = "kernelgate.yaml"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return serve.Load(serve.Sources{File: file, Getenv: func(name string) string { return env[name] }, Flags: flags})
}

func TestPrecedence(t *testing.T) {
	file := good + "listen: :1\nurl: https://file.example.com\nlog: {level: warn}\nreconcile: 1m\n"
	env := map[string]string{
		"KERNELGATE_LISTEN": ":2", "KERNELGATE_URL": "https://env.example.com", "KERNELGATE_RECONCILE": "2m", "KERNELGATE_RUNNER_LABELS": "cpu, big",
		"KERNELGATE_RUNNERS": "[{name: gpu1, labels: [l4], token_file: /k/gpu1}]", "KERNELGATE_GITHUB_REPOSITORIES": "a/b,c/d",
		"KERNELGATE_GITHUB_WEBHOOK_SECRET_FILE": "/k/new,/k/old", "KERNELGATE_DATA": "/data",
	}
	c, err := load(t, file, env, map[string]string{"listen": ":3", "runner-local": "false", "github-app-id": "8"})
	if err != nil {
		t.Fatal(err)
	}
	want := serve.Config{
		Data: "/data", Listen: ":3", URL: "https://env.example.com", Reconcile: quantity.Duration(2 * time.Minute),
		GitHub: serve.GitHub{
			AppID: 8, PrivateKeyFile: "/k/key.pem", WebhookSecretFile: serve.Words{"/k/new", "/k/old"}, Repositories: []string{"a/b", "c/d"},
		},
		Runner:  serve.LocalRunner{Name: "local", Labels: []string{"cpu", "big"}, GPUs: "all"},
		Runners: []serve.RemoteRunner{{Name: "gpu1", Labels: []string{"l4"}, TokenFile: "/k/gpu1"}},
		Log:     serve.Log{Level: "warn", Format: "text"},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("loaded\n%+v, want\n%+v", c, want)
	}
}

func TestDataFolder(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"given", map[string]string{"KERNELGATE_DATA": "/d"}, "/d"},
		{"state home", map[string]string{"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/kernelgate"},
		{"home", map[string]string{"HOME": "/h"}, "/h/.local/state/kernelgate"},
		{"neither", nil, "/var/lib/kernelgate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if os.Geteuid() == 0 && tt.env["KERNELGATE_DATA"] == "" {
				tt.want = "/var/lib/kernelgate"
			}
			c, err := load(t, good, tt.env, nil)
			if err != nil || c.Data != tt.want {
				t.Errorf("the data folder is %q (%v), want %q", c.Data, err, tt.want)
			}
		})
	}
}

// TestMistakes shows what an operator reads.
func TestMistakes(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		env, flags map[string]string
	}{
		{name: "nothing"},
		{name: "empty-file", file: "\n"},
		{name: "unknown-fields", file: good + "listn: :80\nrunner: {locl: true}\n"},
		{name: "everything-wrong", file: `data: ""
listen: eighty
url: kernelgate.example.com
github:
  app_id: many
  private_key_file: /k/key
  token_file: /k/token
  api_url: https://user:password@github.example.com
  repositories: [kernels, a/b, A/B]
nats: http://nats
runner: {labels: ["a b"], includes: {a/b: /opt/x, cutlass: opt/cutlass, fine: /opt/fine}, toolchains: [/opt/cuda-12.9, cuda], socket: run.sock, name: "", user: Root!}
runners:
  - {name: local, labels: [l4], token_file: /k/t}
  - {name: gpu 1, labels: [l/4], token_file: /k/t}
  - {labels: []}
sweeps: [{repository: everything}, {repository: a/b, at: noon}, {repository: A/B}, {repository: c/d, every: 5m}, {repository: "*", kernels: ["[a"]}]
watch: [{repository: everything}, {repository: a/b, at: noon, against: main}, {repository: A/B, slower: 0.01%}, {repository: c/d, every: 5m, kernels: [""]}, {repository: "*", slower: 60%}, {repository: e/f, slower: much}, {at: 02:30}]
limits: [{repository: everything, jobs: 1}, {repository: a/b, jobs: -1}, {repository: A/B}, {jobs: 2}]
reconcile: 1s
log: {level: loud, format: xml}
`},
		{name: "inline-secrets", file: `github:
  app_id: 7
  private_key: |
    -----BEGIN RSA PRIVATE KEY-----
    hidden
  webhook_secret: hidden
  token: hidden
nats: nats://user:hidden@nats.example.com
runners:
  - {name: gpu1, labels: [l4], token: hidden}
`},
		{name: "secrets-as-files", file: `github:
  token_file: ghp_hidden
  webhook_secret_file: [/k/a, "-----BEGIN hidden"]
  repositories: [a/b]
runners: [{name: gpu1, labels: [l4], token_file: github_pat_hidden}]
`},
		{name: "pages", file: good + "pages: {public: [nonsense, a/b, A/B], token: x, token_file: ghp_hidden, client_id: Iv1}\n"},
		{name: "notify", file: good + "notify:\n  - {name: a b, form: teams, url_file: 'https://hooks.example/hidden', secret: hidden, on: [pass], repositories: [x]}\n  - {name: b, form: slack, url_file: /k/u, secret_file: ghp_hidden}\n  - {name: b, url: hidden}\n"},
		{name: "pages-without-url", file: good + "pages: {client_id: Iv1, client_secret_file: /k/s}\n"},
		{name: "runner-names", file: good + "runners: [{name: local, labels: [], token_file: /k/a}, {name: b, labels: [l4], token_file: /k/b}, {name: b, labels: [l4], token_file: /k/c}]\n"},
		{name: "app-without-key", file: "github: {app_id: 7}\n"},
		{name: "key-without-app", file: "github: {private_key_file: /k/key, webhook_secret_file: /k/hook}\n"},
		{name: "token-without-repositories", file: "github: {token_file: /k/token, webhook_secret_file: /k/hook}\n"},
		{name: "no-yaml", file: "github: [\n"},
		{name: "certificate-without-key", file: good + "nats: tls://n1:4222\nnats_certificate_file: /k/tls.crt\n"},
		{name: "key-without-certificate", file: good + "nats: tls://n1:4222\nnats_key_file: /k/tls.key\n"},
		{name: "a-list", file: "- github\n"},
		{name: "environment", file: good, env: map[string]string{
			"KERNELGATE_LISTEN": "x", "KERNELGATE_RUNNER_LOCAL": "perhaps", "KERNELGATE_RECONCILE": "5", "KERNELGATE_GITHUB_APP_ID": "seven",
			"KERNELGATE_RUNNERS": "[{name: gpu1, lables: [l4]}]", "KERNELGATE_GITHUB_REPOSITORIES": "a/b,c",
		}},
		{name: "flags", file: good, flags: map[string]string{"listen": "x", "log-level": "loud", "reconcile": "soon", "runner-labels": "a b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			golden, err := filepath.Abs(filepath.Join("testdata", tt.name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = load(t, tt.file, tt.env, tt.flags)
			var bad usage.Error
			if !errors.As(err, &bad) {
				t.Fatalf("the error is %v, and should be the operator's", err)
			}
			got := err.Error() + "\n"
			if strings.Contains(got, "hidden") {
				t.Errorf("a secret is told:\n%s", got)
			}
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Two with one token would be taken for each other: --check-config says so.
func TestTokensDiffer(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	one, two := strings.Repeat("1", 32), strings.Repeat("2", 32)
	c := serve.Config{Runners: []serve.RemoteRunner{{Name: "gpu1", TokenFile: write("gpu1", one)}, {Name: "gpu2", TokenFile: write("gpu2", two)}}, Operator: write("operator", one+two)}
	read := func() error {
		_, err := c.ReadSecrets(func(string) string { return "" }, func(string) {})
		return err
	}
	if err := read(); err != nil {
		t.Error(err)
	}
	write("gpu2", one+"\n")
	write("operator", one)
	err := read()
	var bad usage.Error
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), "runners[1].token_file: is the same token as that of runners[0].token_file") || !strings.Contains(err.Error(), "operator_token_file: is the same") || strings.Contains(err.Error(), one) {
		t.Errorf("one token for three: %v", err)
	}
}

func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	long := strings.Repeat("x", 32)
	c := serve.Config{
		GitHub:  serve.GitHub{AppID: 7, PrivateKeyFile: write("key", "KEY\n", 0o644), WebhookSecretFile: serve.Words{write("new", long+"\n", 0o600), write("old", long+"o", 0o600)}},
		Runners: []serve.RemoteRunner{{Name: "gpu1", TokenFile: write("gpu1", long, 0o600)}},
	}
	var warnings []string
	s, err := c.ReadSecrets(func(string) string { return "" }, func(text string) { warnings = append(warnings, text) })
	if err != nil {
		t.Fatal(err)
	}
	want := serve.Secrets{PrivateKey: []byte("KEY"), Webhooks: [][]byte{[]byte(long), []byte(long + "o")}, Runners: map[string]string{"gpu1": long}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "chmod 600") || !strings.Contains(warnings[0], "key") {
		t.Errorf("warned of %q", warnings)
	}

	env := map[string]string{"KERNELGATE_GITHUB_TOKEN": "ghp_x", "KERNELGATE_GITHUB_WEBHOOK_SECRET": long}
	s, err = serve.Config{}.ReadSecrets(func(name string) string { return env[name] }, func(string) {})
	if err != nil || s.Token != "ghp_x" || len(s.Webhooks) != 1 {
		t.Errorf("from the environment: %+v, %v", s, err)
	}

	told := serve.Config{GitHub: c.GitHub, Notify: []serve.Notify{{Name: "team", URLFile: write("url", "https://chat.example/hooks/1\n", 0o600), SecretFile: write("sign", long, 0o600)}}}
	if s, err := told.ReadSecrets(func(string) string { return "" }, func(string) {}); err != nil || s.Notify["team"].URL != "https://chat.example/hooks/1" || string(s.Notify["team"].Secret) != long {
		t.Errorf("who is told: %+v, %v", s.Notify, err)
	}
	told.Notify[0].URLFile = write("nowhere", "file:///etc/passwd", 0o600)
	if _, err := told.ReadSecrets(func(string) string { return "" }, func(string) {}); err == nil || !strings.Contains(err.Error(), "does not hold an address") || strings.Contains(err.Error(), "passwd") {
		t.Errorf("an address of a file: %v", err)
	}

	c.GitHub.WebhookSecretFile = serve.Words{write("short", "short", 0o600), write("empty", " \n", 0o600), filepath.Join(dir, "gone")}
	_, err = c.ReadSecrets(func(string) string { return "" }, func(string) {})
	var bad usage.Error
	if !errors.As(err, &bad) || len(strings.Split(err.Error(), "\n")) != 3 || strings.Contains(err.Error(), "\"short\"") {
		t.Errorf("three bad files: %v", err)
	}
}

func TestUnknownVariables(t *testing.T) {
	got := serve.Unknown([]string{"PATH=x", "KERNELGATE_LISTEN=:1", "KERNELGATE_LISTN=:1", "KERNELGATE_GITHUB_TOKEN=x", "KERNELGATE_CONFIG=x"})
	if diff := cmp.Diff([]string{"KERNELGATE_LISTN"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestShow(t *testing.T) {
	text := good + "sweeps: [{repository: a/b, at: 02:30, kernels: [kernels/a/*]}, {repository: c/d, every: 12h}]\nwatch: [{repository: a/b, at: 03:30}, {repository: \"*\", against: best, slower: 2.5%, kernels: [kernels/b]}]\n"
	c, err := load(t, text, map[string]string{"KERNELGATE_NATS": "nats://user:hidden@nats.example.com", "KERNELGATE_DATA": "/d"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := c.Show(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"github.app_id                7\n", "/k/key.pem", "nats://user:xxxxx@nats.example.com", "reconcile                    5m0s\n",
		"sweeps                       a/b: kernels/a/*, every 24h0m0s, at 02:30; c/d: all kernels, every 12h0m0s, at 00:00\n",
		"watch                        a/b: all kernels, every 24h0m0s, at 03:30, against release, slower by 1%; *: kernels/b, every 24h0m0s, at 00:00, against best, slower by 2.5%\n",
		"limits                       -\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// TestExample: what the README tells people to start from is right.
func TestExample(t *testing.T) {
	c, err := serve.Load(serve.Sources{File: "../install/kernelgate.example.yaml", Getenv: func(string) string { return "" }})
	if err != nil || c.GitHub.AppID != 123456 || !c.Runner.Local {
		t.Errorf("%+v, %v", c, err)
	}
	// What is commented out is right too, but for the App and the token together.
	text, err := os.ReadFile("../install/kernelgate.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	full := regexp.MustCompile(`(?m)^( *)# ( *(?:- )?[a-z_]+:.*)$`).ReplaceAllString(string(text), "$1$2")
	full = regexp.MustCompile(`(?m)^ *(app_id|private_key_file): .*\n`).ReplaceAllString(full, "")
	if c, err = load(t, full, nil, nil); err != nil {
		t.Fatalf("with everything in force:\n%s\n%v", full, err)
	}
	if c.Runner.User == "" || len(c.Runners) != 1 || c.NATSCreds == "" || c.GitHub.APIURL == "" {
		t.Errorf("something is still left out: %+v", c)
	}
}

func TestManifest(t *testing.T) {
	data, err := os.ReadFile("../github/app/app-manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Permissions map[string]string    `json:"default_permissions"`
		Events      []string             `json:"default_events"`
		Hook        struct{ URL string } `json:"hook_attributes"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"check_run", "check_suite", "issue_comment", "merge_group", "pull_request", "pull_request_review", "pull_request_review_comment", "push", "repository"}, m.Events); diff != "" {
		t.Error(diff)
	}
	for name, level := range m.Permissions {
		if want := map[string]string{"checks": "write", "contents": "read", "issues": "write", "merge_queues": "read", "metadata": "read", "pull_requests": "write"}[name]; level != want {
			t.Errorf("%s is %s, want %s", name, level, want)
		}
	}
	if !strings.HasSuffix(m.Hook.URL, "/webhook") {
		t.Errorf("the hook goes to %s", m.Hook.URL)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(good, ":8080", "[{name: a, labels: [b], token_file: c}]")
	f.Add("github: {token: x}\nrunners: [{}]\n", "x", "a,b")
	f.Add("- 1\n", "", "[")
	f.Fuzz(func(t *testing.T, text, listen, runners string) {
		file := filepath.Join(t.TempDir(), "kernelgate.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		env := map[string]string{"KERNELGATE_LISTEN": listen, "KERNELGATE_RUNNERS": runners}
		c, err := serve.Load(serve.Sources{File: file, Getenv: func(name string) string { return env[name] }})
		var bad usage.Error
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("the operator's mistake is told as %v", err)
		}
		if err == nil && (c.GitHub.AppID == 0) == (c.GitHub.TokenFile == "") {
			t.Fatalf("an account is missing: %+v", c.GitHub)
		}
	})
}

// Sets of headers are a mapping in the file, in the environment and on the command line.
func TestIncludes(t *testing.T) {
	want := map[string]string{"cutlass": "/opt/cutlass/include", "mine": "/srv/mine"}
	const text = "{cutlass: /opt/cutlass/include, mine: /srv/mine}"
	for name, c := range map[string]struct {
		file       string
		env, flags map[string]string
	}{
		"file":        {file: good + "runner: {includes: " + text + "}\n"},
		"environment": {file: good, env: map[string]string{"KERNELGATE_RUNNER_INCLUDES": text}},
		"flag":        {file: good, flags: map[string]string{"runner-includes": text}},
	} {
		config, err := load(t, c.file, c.env, c.flags)
		if err != nil || !maps.Equal(config.Runner.Includes, want) {
			t.Errorf("%s: %v (%v)", name, config.Runner.Includes, err)
		}
		var shown strings.Builder
		if err := config.Show(&shown); err != nil || !strings.Contains(shown.String(), "cutlass: /opt/cutlass/include, mine: /srv/mine\n") {
			t.Errorf("%s: shown as\n%s", name, shown.String())
		}
	}
}
