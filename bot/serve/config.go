package serve

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"github.com/kernelgate/kernelgate/policies/quantity"
)

// A Config is what an operator decides. Load reads it; Defaults is where it
// starts from.
type Config struct {
	Data      string            `yaml:"data" eg:"/var/lib/kernelgate" default:"(/var/lib/kernelgate for root, otherwise a folder in the user's home)" doc:"Folder for the journal, the ledger, the mirrors and the local runner."`
	Listen    string            `yaml:"listen" eg:"127.0.0.1:8080" default:":8080" doc:"Address to listen on for webhooks, runners, pages and metrics. It has no TLS: use a reverse proxy."`
	URL       string            `yaml:"url" eg:"https://kernelgate.example.com" doc:"Public address of the bot, for links to the pages."`
	Advertise string            `yaml:"advertise" eg:"http://10.0.0.3:8080" default:"(none)" doc:"Address at which the other bots on the same NATS servers reach this bot. While this bot is the leader, standby bots forward requests of runners, with their tokens, to this address. Without it, every runner must have the addresses of all bots."`
	GitHub    GitHub            `yaml:"github" eg:"{app_id: 123456, private_key_file: key.pem, webhook_secret_file: secret}" default:"(required)" doc:"How the bot authenticates to GitHub: as an App, or with a token."`
	NATS      Words             `yaml:"nats" eg:"[nats://n1:4222, nats://n2:4222, nats://n3:4222]" default:"(an embedded server)" doc:"URL of an external NATS server, or of several servers of one cluster."`
	NATSCreds string            `yaml:"nats_credentials_file" eg:"/etc/kernelgate/nats.creds" doc:"Credentials file (JWT and seed) for the external NATS server."`
	NATSRoots string            `yaml:"nats_ca_file" eg:"/etc/kernelgate/nats-ca.pem" default:"(the system's)" doc:"Certificates of the authority that signed those of the NATS servers, for URLs with tls://."`
	NATSCert  string            `yaml:"nats_certificate_file" eg:"/etc/kernelgate/nats/tls.crt" doc:"Certificate of the bot for NATS servers that require one from their clients (verify or verify_and_map in their tls)."`
	NATSKey   string            `yaml:"nats_key_file" eg:"/etc/kernelgate/nats/tls.key" doc:"Private key of nats_certificate_file."`
	Monitors  Words             `yaml:"nats_monitors" eg:"[http://n1:8222, http://n2:8222, http://n3:8222]" default:"(not monitored)" doc:"Monitoring addresses of the NATS servers (their http_port), one for each server. /metrics shows how full each server is, and the shipped alerts use it."`
	Replicas  int               `yaml:"nats_replicas" eg:"3" default:"0" bounds:"0 to 5" doc:"Number of servers in the cluster that keep a copy of each stream. 0 leaves existing streams as they are, and creates new ones with one copy. The bot raises the number at its start and never lowers it."`
	Runner    LocalRunner       `yaml:"runner" eg:"{local: false}" doc:"The runner that serve starts on this host."`
	Runners   []RemoteRunner    `yaml:"runners" eg:"[{name: gpu1, labels: [l4], token_file: /etc/kernelgate/gpu1.token}]" doc:"Runners on other hosts."`
	Operator  string            `yaml:"operator_token_file" eg:"/etc/kernelgate/operator.token" default:"(kernelgate fleet is refused)" doc:"File with the token for kernelgate fleet, which lists, drains, tests and returns runners."`
	Limits    []Limit           `yaml:"limits" eg:"[{repository: owner/name, gpu_minutes: 600, jobs: 4}]" doc:"How much of the runners each repository may use. The check says when its kernels wait because of a limit. A limit never stops a running job."`
	Sweeps    []Sweep           `yaml:"sweeps" eg:"[{repository: owner/name, at: 02:30}]" doc:"When to measure all kernels of a default branch, for their history. These jobs have the lowest priority. notify reports kernels that became slower since the last sweep."`
	Watch     []Watch           `yaml:"watch" eg:"[{repository: owner/name, at: 03:30}]" doc:"When to measure a default branch against its last release or the best state of its kernels. If a slowdown is proven, the bot opens one issue for the kernel. It closes the issue when the slowdown is gone. These jobs have the lowest priority."`
	Pages     Pages             `yaml:"pages" eg:"{public: [owner/name]}" doc:"Who may see runs, kernels and changes in a browser. By default, nobody may."`
	MCP       MCP               `yaml:"mcp" eg:"{tokens_file: /etc/kernelgate/agents}" doc:"Tools for agents under /mcp: they submit implementations of kernels, which the runners measure as they do the code of a fork. By default, there are none."`
	Notify    []Notify          `yaml:"notify" eg:"[{name: team, form: slack, url_file: /etc/kernelgate/slack.url}]" doc:"Where to send verdicts in addition to GitHub."`
	Telemetry Telemetry         `yaml:"telemetry" eg:"{endpoint: 'http://collector:4318'}" doc:"Where to send traces: how long each step of a change took, from the webhook to the verdict."`
	Reconcile quantity.Duration `yaml:"reconcile" eg:"2m" default:"5m" bounds:"10s to 24h" doc:"How often the bot reconciles all open changes with GitHub, in case a webhook was lost."`
	Log       Log               `yaml:"log" eg:"{level: debug}" doc:"Level and format of the log."`
}

// GitHub is the bot's account: an App (app_id, private_key_file), or a token
// (token_file, repositories).
type GitHub struct {
	AppID             int64    `yaml:"app_id" eg:"123456" default:"(required for an App)" doc:"ID of the GitHub App."`
	PrivateKeyFile    string   `yaml:"private_key_file" eg:"/etc/kernelgate/private-key.pem" default:"(required for an App)" doc:"File with the private key of the App."`
	TokenFile         string   `yaml:"token_file" eg:"/etc/kernelgate/token" default:"(required without an App)" doc:"File with a personal access token, if there is no App."`
	WebhookSecretFile Words    `yaml:"webhook_secret_file" eg:"/etc/kernelgate/webhook-secret" default:"(required)" doc:"File with the secret of the webhook. Name several files while you replace the secret."`
	APIURL            string   `yaml:"api_url" eg:"https://github.example.com/api/v3" default:"(the API of github.com)" doc:"Address of the API of GitHub Enterprise."`
	GitURL            string   `yaml:"git_url" eg:"https://github.example.com" default:"(derived from api_url)" doc:"Address to clone repositories from."`
	Repositories      []string `yaml:"repositories" eg:"[owner/name]" default:"(all repositories where the App is installed; required with a token)" doc:"Repositories to gate."`

	PrivateKey    inlineSecret `yaml:"private_key" doc:"Refused: use private_key_file."`
	Token         inlineSecret `yaml:"token" doc:"Refused: use token_file."`
	WebhookSecret inlineSecret `yaml:"webhook_secret" doc:"Refused: use webhook_secret_file."`
}

// LocalRunner is the runner that serve starts as a process of its own.
type LocalRunner struct {
	Local      bool              `yaml:"local" eg:"false" default:"true" doc:"Start a runner on this host."`
	Name       string            `yaml:"name" eg:"gate1" default:"local" bounds:"(letters, digits, . _ -)" doc:"Name of the runner in reports."`
	Labels     []string          `yaml:"labels" eg:"[cpu]" default:"(cpu; with a GPU also gpu and its name; with builds, build-nvcc and build-triton if the host has the compiler)" doc:"Kinds of jobs that the runner takes."`
	GPUs       string            `yaml:"gpus" eg:"0,2" default:"all" bounds:"(all, none, or a list of nvidia-smi numbers and UUIDs)" doc:"GPUs of this host to measure on, one job on each at a time. For a runner on a different host, use its flag --gpus."`
	Builds     bool              `yaml:"builds" eg:"true" default:"false" doc:"Only compile, for runners on other hosts that have a GPU. This host needs no GPU. For a runner on a different host, use its flag --builds."`
	Socket     string            `yaml:"socket" eg:"/run/kernelgate/runner.sock" default:"(runner.sock in the data folder)" doc:"Unix socket for runners on this host."`
	Includes   map[string]string `yaml:"includes" eg:"{cutlass: /opt/cutlass/include}" doc:"Sets of headers on this host that manifests include by a name in <>. For a runner on a different host, use its flag --include."`
	Toolchains []string          `yaml:"toolchains" eg:"[/usr/local/cuda-12.9, /opt/triton-3.6.0]" doc:"Folders of additional compilers on this host that policies may pin: CUDA toolkits, and folders with the package triton. For a runner on a different host, use its flag --toolchain."`
	User       string            `yaml:"user" eg:"kernelgate-runner" default:"(the user of serve)" doc:"User to run the runner as. serve must then run as root."`
}

// A RemoteRunner is a runner elsewhere: kernelgate runner --server.
type RemoteRunner struct {
	Name      string       `yaml:"name" required:"true" eg:"gpu1" doc:"Name of the runner, as in its flag --name."`
	Labels    []string     `yaml:"labels" required:"true" eg:"[l4]" doc:"Kinds of jobs that the runner may take."`
	TokenFile string       `yaml:"token_file" required:"true" eg:"/etc/kernelgate/gpu1.token" doc:"File with the token of the runner; the runner has the same token in its --token-file."`
	Token     inlineSecret `yaml:"token" doc:"Refused: use token_file."`
}

// A Limit is what one repository may use, or each of those that no other limit names.
type Limit struct {
	Repository string `yaml:"repository" required:"true" eg:"owner/name" doc:"The repository; \"*\" means every repository that has no entry."`
	GPUMinutes int    `yaml:"gpu_minutes" eg:"600" default:"(no limit)" doc:"Minutes on runners with a GPU per day. A day begins at 00:00 UTC. A running job counts with its expected time."`
	Jobs       int    `yaml:"jobs" eg:"4" default:"(no limit)" doc:"Number of jobs that may run at the same time."`
}

// A Sweep measures one repository's default branch at a time of day, or that of each which no other sweep names.
type Sweep struct {
	Repository string            `yaml:"repository" required:"true" eg:"owner/name" doc:"The repository; \"*\" means every repository that has no entry."`
	At         string            `yaml:"at" eg:"02:30" default:"(midnight)" doc:"Time of day, UTC. If no bot ran at one or more of these times, the bot does one sweep at its next start."`
	Every      quantity.Duration `yaml:"every" eg:"12h" default:"(24h)" bounds:"1h to 168h" doc:"Time between two sweeps."`
	Kernels    []string          `yaml:"kernels" eg:"[\"kernels/attention/*\"]" default:"(all)" doc:"Globs of the kernels to measure, by folder or manifest. * matches anything but /."`
}

// A Watch measures the default branch of a repository at a time of day, against a release or the best state of its kernels. The
// repository "*" stands for all repositories that no other watch names.
type Watch struct {
	Repository string            `yaml:"repository" required:"true" eg:"owner/name" doc:"The repository; \"*\" means every repository that has no entry."`
	At         string            `yaml:"at" eg:"03:30" default:"(midnight)" doc:"Time of day, UTC. If no bot ran at one or more of these times, the bot makes up for them with one watch at its next start."`
	Every      quantity.Duration `yaml:"every" eg:"12h" default:"(24h)" bounds:"1h to 168h" doc:"Time between two watches."`
	Against    string            `yaml:"against" eg:"best" default:"(release)" doc:"What to compare with. release: the tag with the highest version, such as v1.2.0, among the tags of the default branch; pre-releases do not count. If no tag is a version, the newest annotated tag. best: for each kernel, the fastest commit that was ever merged."`
	Kernels    []string          `yaml:"kernels" eg:"[\"kernels/attention/*\"]" default:"(all)" doc:"Globs of the kernels to measure, by folder or manifest. * matches anything but /."`
	Slower     quantity.Percent  `yaml:"slower" eg:"2%" default:"(1%)" bounds:"0.1% to 50%" doc:"Smallest slowdown that counts."`
}

// Log is how serve writes to stderr.
type Log struct {
	Level  string `yaml:"level" eg:"debug" default:"info" doc:"debug, info, warn or error."`
	Format string `yaml:"format" eg:"json" default:"text" doc:"text or json."`
}

// Defaults is a configuration in which only the account at GitHub is missing.
func Defaults(getenv func(string) string) Config {
	return Config{
		Data:   defaultData(getenv, os.Geteuid()),
		Listen: ":8080", Reconcile: quantity.Duration(5 * time.Minute),
		Runner: LocalRunner{Local: true, Name: "local", GPUs: "all"},
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
	return cmp.Or(c.Runner.Socket, filepath.Join(c.Data, "runner.sock"))
}
