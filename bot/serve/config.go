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
	Data      string            `yaml:"data" eg:"/var/lib/kernelgate" default:"(/var/lib/kernelgate for root, else a folder of the user's)" doc:"Folder of the journal, the ledger, the mirrors and the local runner."`
	Listen    string            `yaml:"listen" eg:"127.0.0.1:8080" default:":8080" doc:"Address for webhooks, runners, pages and metrics; TLS is a reverse proxy's business."`
	URL       string            `yaml:"url" eg:"https://kernelgate.example.com" doc:"Public address, for links to the pages."`
	Advertise string            `yaml:"advertise" eg:"http://10.0.0.3:8080" default:"(nowhere)" doc:"Where the other bots on the same NATS servers reach this one. A runner that asks one which stands by is passed on there, with its token, while this bot leads; otherwise it must know the addresses of all."`
	GitHub    GitHub            `yaml:"github" eg:"{app_id: 123456, private_key_file: key.pem, webhook_secret_file: secret}" default:"(required)" doc:"Who the bot is at GitHub: an App, or a token."`
	NATS      Words             `yaml:"nats" eg:"[nats://n1:4222, nats://n2:4222, nats://n3:4222]" default:"(one is embedded)" doc:"URL of an external NATS server, or of several servers of one cluster."`
	NATSCreds string            `yaml:"nats_credentials_file" eg:"/etc/kernelgate/nats.creds" doc:"Credentials file for the external NATS server."`
	NATSRoots string            `yaml:"nats_ca_file" eg:"/etc/kernelgate/nats-ca.pem" default:"(the system's)" doc:"Certificates of who vouches for the NATS servers, for URLs with tls://."`
	Monitors  Words             `yaml:"nats_monitors" eg:"[http://n1:8222, http://n2:8222, http://n3:8222]" default:"(not watched)" doc:"Where the NATS servers say how full they are (their http_port), one for each server. /metrics shows it, and the shipped alerts watch it."`
	Replicas  int               `yaml:"nats_replicas" eg:"3" default:"0" bounds:"0 to 5" doc:"How many servers of the cluster keep a copy of everything; 0 leaves what is there, and makes one copy of what is new. It is raised at a start, and never lowered."`
	Runner    LocalRunner       `yaml:"runner" eg:"{local: false}" doc:"The runner that serve starts itself."`
	Runners   []RemoteRunner    `yaml:"runners" eg:"[{name: gpu1, labels: [l4], token_file: /etc/kernelgate/gpu1.token}]" doc:"Runners on other hosts."`
	Operator  string            `yaml:"operator_token_file" eg:"/etc/kernelgate/operator.token" default:"(nobody)" doc:"Token of whoever lists, drains and returns runners with kernelgate fleet."`
	Limits    []Limit           `yaml:"limits" eg:"[{repository: owner/name, gpu_minutes: 600, jobs: 4}]" doc:"What repositories may use of the runners. A check says so when a limit holds its kernels back; what runs is never ended by one."`
	Sweeps    []Sweep           `yaml:"sweeps" eg:"[{repository: owner/name, at: 02:30}]" doc:"When all kernels of a default branch are measured, for their history. Their jobs go after all others. What became slower since the last sweep is told (notify)."`
	Pages     Pages             `yaml:"pages" eg:"{public: [owner/name]}" doc:"Who may look at runs, kernels and changes in a browser; nobody unless it says so."`
	Notify    []Notify          `yaml:"notify" eg:"[{name: team, form: slack, url_file: /etc/kernelgate/slack.url}]" doc:"Where verdicts are told beside GitHub."`
	Telemetry Telemetry         `yaml:"telemetry" eg:"{endpoint: 'http://collector:4318'}" doc:"Who is told how long each step of a change took, from its webhook to its verdict."`
	Reconcile quantity.Duration `yaml:"reconcile" eg:"2m" default:"5m" bounds:"10s to 24h" doc:"How often everything is looked at again, for webhooks that never came."`
	Log       Log               `yaml:"log" eg:"{level: debug}" doc:"What is logged, and how."`
}

// GitHub is the bot's account: an App (app_id, private_key_file), or a token
// (token_file, repositories).
type GitHub struct {
	AppID             int64    `yaml:"app_id" eg:"123456" default:"(required for an App)" doc:"The GitHub App's number."`
	PrivateKeyFile    string   `yaml:"private_key_file" eg:"/etc/kernelgate/private-key.pem" default:"(required for an App)" doc:"The App's private key."`
	TokenFile         string   `yaml:"token_file" eg:"/etc/kernelgate/token" default:"(required without an App)" doc:"A personal access token, where there is no App."`
	WebhookSecretFile Words    `yaml:"webhook_secret_file" eg:"/etc/kernelgate/webhook-secret" default:"(required)" doc:"The webhook's secret; several while it is replaced."`
	APIURL            string   `yaml:"api_url" eg:"https://github.example.com/api/v3" default:"(github.com's)" doc:"GitHub Enterprise's API."`
	GitURL            string   `yaml:"git_url" eg:"https://github.example.com" default:"(follows from api_url)" doc:"Where repositories are cloned from."`
	Repositories      []string `yaml:"repositories" eg:"[owner/name]" default:"(everything the App is installed on; required with a token)" doc:"What to watch."`

	PrivateKey    inlineSecret `yaml:"private_key" doc:"Refused: use private_key_file."`
	Token         inlineSecret `yaml:"token" doc:"Refused: use token_file."`
	WebhookSecret inlineSecret `yaml:"webhook_secret" doc:"Refused: use webhook_secret_file."`
}

// LocalRunner is the runner that serve starts as a process of its own.
type LocalRunner struct {
	Local      bool              `yaml:"local" eg:"false" default:"true" doc:"Start a runner on this host."`
	Name       string            `yaml:"name" eg:"gate1" default:"local" bounds:"(letters, digits, . _ -)" doc:"Its name in reports."`
	Labels     []string          `yaml:"labels" eg:"[cpu]" default:"(found out: cpu, and gpu with the GPU's name; with builds, build-nvcc and build-triton where the compiler is there)" doc:"Kinds of jobs it takes."`
	GPUs       string            `yaml:"gpus" eg:"0,2" default:"all" bounds:"(all, none, or numbers of nvidia-smi and UUIDs)" doc:"GPUs of this host that it measures on, a job on each at a time. A runner elsewhere is told by its --gpus."`
	Builds     bool              `yaml:"builds" eg:"true" default:"false" doc:"Compile for runners elsewhere that have a GPU, and measure nothing: this host needs none. A runner elsewhere is told by its --builds."`
	Socket     string            `yaml:"socket" eg:"/run/kernelgate/runner.sock" default:"(runner.sock in the data folder)" doc:"Unix socket for runners on this host."`
	Includes   map[string]string `yaml:"includes" eg:"{cutlass: /opt/cutlass/include}" doc:"Sets of headers on this host that manifests include by a name in <>. A runner elsewhere is told by its --include."`
	Toolchains []string          `yaml:"toolchains" eg:"[/usr/local/cuda-12.9, /opt/triton-3.6.0]" doc:"Folders of further compilers on this host, which policies may pin: CUDA toolkits, and folders that hold the package triton. A runner elsewhere is told by its --toolchain."`
	User       string            `yaml:"user" eg:"kernelgate-runner" default:"(the server's)" doc:"User to run it as; serve must be root for that."`
}

// A RemoteRunner is a runner elsewhere: kernelgate runner --server.
type RemoteRunner struct {
	Name      string       `yaml:"name" required:"true" eg:"gpu1" doc:"The runner's --name."`
	Labels    []string     `yaml:"labels" required:"true" eg:"[l4]" doc:"Kinds of jobs that it may take."`
	TokenFile string       `yaml:"token_file" required:"true" eg:"/etc/kernelgate/gpu1.token" doc:"Its token, the same as in its own --token-file."`
	Token     inlineSecret `yaml:"token" doc:"Refused: use token_file."`
}

// A Limit is what one repository may use, or each of those that no other limit names.
type Limit struct {
	Repository string `yaml:"repository" required:"true" eg:"owner/name" doc:"Which; \"*\" is each that is not named."`
	GPUMinutes int    `yaml:"gpu_minutes" eg:"600" default:"(as many as there are)" doc:"Minutes on runners with a GPU in a day, which begins at 00:00 UTC. What runs counts for as long as it is expected to."`
	Jobs       int    `yaml:"jobs" eg:"4" default:"(as many as there are runners)" doc:"Jobs at runners at once."`
}

// A Sweep measures one repository's default branch at a time of day, or that of each which no other sweep names.
type Sweep struct {
	Repository string            `yaml:"repository" required:"true" eg:"owner/name" doc:"Which; \"*\" is each that is not named."`
	At         string            `yaml:"at" eg:"02:30" default:"(midnight)" doc:"Time of day, UTC. Times that pass while no bot runs are made up for by one sweep."`
	Every      quantity.Duration `yaml:"every" eg:"12h" default:"(24h)" bounds:"1h to 168h" doc:"How long from one to the next."`
	Kernels    []string          `yaml:"kernels" eg:"[\"kernels/attention/*\"]" default:"(all)" doc:"Which kernels, by their folders or manifests; * is anything but /."`
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
