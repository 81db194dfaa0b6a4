package serve

import (
	"os"
	"path/filepath"
	"time"

	"github.com/kernelgate/kernelgate/policies/quantity"
)

// A Config is what an operator decides. Load reads it; Defaults is where it
// starts from.
type Config struct {
	Data      string            `yaml:"data" eg:"/var/lib/kernelgate" doc:"Folder of the journal, the ledger, the mirrors and the local runner."`
	Listen    string            `yaml:"listen" eg:":8080" doc:"Address for webhooks, runners and metrics; TLS is a reverse proxy's business."`
	URL       string            `yaml:"url" eg:"https://kernelgate.example.com" doc:"Public address, for links."`
	GitHub    GitHub            `yaml:"github" doc:"Who the bot is at GitHub: an App, or a token."`
	NATS      string            `yaml:"nats" eg:"nats://nats.example.com:4222" doc:"URL of an external NATS server; empty embeds one."`
	NATSCreds string            `yaml:"nats_credentials_file" eg:"/etc/kernelgate/nats.creds" doc:"Credentials file for the external NATS server."`
	Runner    LocalRunner       `yaml:"runner" doc:"The runner that serve starts itself."`
	Runners   []RemoteRunner    `yaml:"runners" eg:"[{name: gpu1, labels: [l4], token_file: /etc/kernelgate/gpu1.token}]" doc:"Runners on other hosts."`
	Reconcile quantity.Duration `yaml:"reconcile" eg:"5m" doc:"How often everything is looked at again, for webhooks that never came."`
	Log       Log               `yaml:"log" doc:"What is logged, and how."`
}

// GitHub is the bot's account: an App (app_id, private_key_file), or a token
// (token_file, repositories).
type GitHub struct {
	AppID             int64    `yaml:"app_id" eg:"123456" doc:"The GitHub App's number."`
	PrivateKeyFile    string   `yaml:"private_key_file" eg:"/etc/kernelgate/private-key.pem" doc:"The App's private key."`
	TokenFile         string   `yaml:"token_file" eg:"/etc/kernelgate/token" doc:"A personal access token, where there is no App."`
	WebhookSecretFile Files    `yaml:"webhook_secret_file" eg:"/etc/kernelgate/webhook-secret" doc:"The webhook's secret; several while it is replaced."`
	APIURL            string   `yaml:"api_url" eg:"https://github.example.com/api/v3" doc:"GitHub Enterprise's API; empty is github.com."`
	GitURL            string   `yaml:"git_url" eg:"https://github.example.com" doc:"Where repositories are cloned from; follows from api_url."`
	Repositories      []string `yaml:"repositories" eg:"[owner/name]" doc:"What to watch; required with a token, everything the App is installed on otherwise."`

	PrivateKey    inlineSecret `yaml:"private_key" doc:"Refused: use private_key_file."`
	Token         inlineSecret `yaml:"token" doc:"Refused: use token_file."`
	WebhookSecret inlineSecret `yaml:"webhook_secret" doc:"Refused: use webhook_secret_file."`
}

// LocalRunner is the runner that serve starts as a process of its own.
type LocalRunner struct {
	Local  bool     `yaml:"local" eg:"true" doc:"Start a runner on this host."`
	Name   string   `yaml:"name" eg:"local" doc:"Its name in reports."`
	Labels []string `yaml:"labels" eg:"[cpu]" doc:"Kinds of jobs it takes; empty finds out: cpu, and gpu with the GPU's name."`
	Socket string   `yaml:"socket" eg:"/run/kernelgate/runner.sock" doc:"Unix socket for runners on this host; empty is runner.sock in the data folder."`
	User   string   `yaml:"user" eg:"kernelgate-runner" doc:"User to run it as; serve must be root for that."`
}

// A RemoteRunner is a runner elsewhere: kernelgate runner --server.
type RemoteRunner struct {
	Name      string       `yaml:"name" required:"true" eg:"gpu1" doc:"The runner's --name."`
	Labels    []string     `yaml:"labels" required:"true" eg:"[l4]" doc:"Kinds of jobs that it may take."`
	TokenFile string       `yaml:"token_file" required:"true" eg:"/etc/kernelgate/gpu1.token" doc:"Its token, the same as in its own --token-file."`
	Token     inlineSecret `yaml:"token" doc:"Refused: use token_file."`
}

// Log is how serve writes to stderr.
type Log struct {
	Level  string `yaml:"level" eg:"info" doc:"debug, info, warn or error."`
	Format string `yaml:"format" eg:"text" doc:"text or json."`
}

// Defaults is a configuration in which only the account at GitHub is missing.
func Defaults(getenv func(string) string) Config {
	return Config{
		Data:   defaultData(getenv, os.Geteuid()),
		Listen: ":8080", Reconcile: quantity.Duration(5 * time.Minute),
		Runner: LocalRunner{Local: true, Name: "local"},
		Log:    Log{Level: "info", Format: "text"},
	}
}

func defaultData(getenv func(string) string, uid int) string {
	const system = "/var/lib/kernelgate"
	if uid == 0 {
		return system
	}
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "kernelgate")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "kernelgate")
	}
	return system
}

// socket is where runners on this host connect.
func (c Config) socket() string {
	if c.Runner.Socket != "" {
		return c.Runner.Socket
	}
	return filepath.Join(c.Data, "runner.sock")
}
