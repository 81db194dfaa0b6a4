package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"gopkg.in/yaml.v3"

	"github.com/kernelgate/kernelgate/bot/serve"
)

const clusterDir = "bot/install/cluster/"

// A container holds the fields of a compose service that concern us.
type container struct {
	host   string // name for other containers
	image  string
	args   []string
	mounts []string // paths inside of the container
}

// TestCluster checks that the programs understand what compose passes to them, and that hosts, ports,
// flags, files and names are consistent.
func TestCluster(t *testing.T) {
	config, err := serve.Load(serve.Sources{File: clusterDir + "kernelgate.yaml", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NATS_NAME", "nats-0")
	nats, err := server.ProcessConfigFile(clusterDir + "nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	if !nats.JetStream || nats.StoreDir != "/data" || !nats.SyncAlways || nats.MaxPayload < 32e6 || nats.ServerName != "nats-0" || nats.Cluster.Name == "" {
		t.Errorf("the NATS servers are told %+v", nats)
	}
	var clients, routes []string
	for _, address := range config.NATS {
		u, err := url.Parse(address)
		if err != nil || u.Port() != fmt.Sprint(nats.Port) {
			t.Errorf("the bots ask %s, and NATS listens on %d: %v", address, nats.Port, err)
		}
		clients = append(clients, u.Hostname())
	}
	for _, u := range nats.Routes {
		if u.Port() != fmt.Sprint(nats.Cluster.Port) {
			t.Errorf("the route %s does not lead to %d", u, nats.Cluster.Port)
		}
		routes = append(routes, u.Hostname())
	}
	if !slices.Equal(clients, routes) || config.Replicas != len(clients) || len(clients) != 3 {
		t.Errorf("the bots ask %v for %d copies, and the servers are %v", clients, config.Replicas, routes)
	}
	caddy, err := os.ReadFile(clusterDir + "Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(caddy), "reverse_proxy 127.0.0.1"+config.Listen+" ") || !strings.Contains(string(caddy), "\n:8443 {\n") {
		t.Errorf("TLS leads elsewhere than to %s", config.Listen)
	}
	for name, all := range map[string][]container{"compose": compose(t)} {
		t.Run(name, func(t *testing.T) { agrees(t, config, clients, all) })
	}
}

// agrees compares the containers with the configuration.
func agrees(t *testing.T, config serve.Config, natsHosts []string, all []container) {
	find := func(word string) (found []container) {
		for _, c := range all {
			if len(c.args) > 0 && c.args[0] == word || word == "nats" && strings.HasPrefix(c.image, "nats:") {
				found = append(found, c)
			}
		}
		return found
	}
	hosts := func(list []container) (names []string) {
		for _, c := range list {
			names = append(names, c.host)
		}
		slices.Sort(names)
		return names
	}
	if got := hosts(find("nats")); !slices.Equal(got, natsHosts) {
		t.Errorf("the NATS servers are %v, and %v are asked", got, natsHosts)
	}
	for _, c := range find("nats") {
		if want := "nats:" + natsVersion(t) + "-alpine"; c.image != want || !slices.Contains(c.mounts, "/data") {
			t.Errorf("%s is %s with %v; the tests run with %s", c.host, c.image, c.mounts, want)
		}
	}
	bots := find("serve")
	if len(bots) != 2 || find("caddy") == nil {
		t.Fatalf("there are %d bots", len(bots))
	}
	for _, c := range bots {
		if c.image != "kernelgate" {
			t.Errorf("%s is %s, not the image of the bot", c.host, c.image)
		}
		parses(t, "serve", c.args)
		needed := []string{c.args[2], config.Data, config.GitHub.PrivateKeyFile, config.GitHub.WebhookSecretFile[0], config.Operator, config.Runners[0].TokenFile}
		for _, file := range needed {
			if !slices.Contains(c.mounts, file) && !slices.Contains(c.mounts, path.Dir(file)) {
				t.Errorf("%s has no %s, among %v", c.host, file, c.mounts)
			}
		}
	}
	for _, c := range find("caddy") {
		if !slices.Contains(c.mounts, "/etc/kernelgate/tls") || !slices.Contains(c.mounts, c.args[3]) {
			t.Errorf("%s lacks its certificate or its configuration: %v", c.host, c.mounts)
		}
	}
	runners := find("runner")
	if len(runners) != len(config.Runners) {
		t.Fatalf("%d runners are started, and %d may come", len(runners), len(config.Runners))
	}
	for i, c := range runners {
		if c.image != "kernelgate-runner" {
			t.Errorf("%s is %s, which has no compiler", c.host, c.image)
		}
		flag := parses(t, "runner", c.args)
		if flag("name") != config.Runners[i].Name || flag("labels") != "["+strings.Join(config.Runners[i].Labels, ",")+"]" {
			t.Errorf("the runner %s with %s comes, and %+v may", flag("name"), flag("labels"), config.Runners[i])
		}
		for _, file := range []string{flag("token-file"), flag("ca"), flag("state")} {
			if !slices.Contains(c.mounts, file) && !slices.Contains(c.mounts, path.Dir(file)) {
				t.Errorf("the runner has no %s, among %v", file, c.mounts)
			}
		}
		var asked []string
		for _, address := range strings.Split(strings.Trim(flag("server"), "[]"), ",") {
			u, err := url.Parse(address)
			if err != nil || u.Scheme != "https" || u.Port() != "8443" {
				t.Errorf("the runner asks %s: %v", address, err)
				continue
			}
			asked = append(asked, u.Hostname())
		}
		if !slices.Equal(asked, hosts(bots)) {
			t.Errorf("the runner asks %v, and the bots are %v", asked, hosts(bots))
		}
	}
}

// parses parses flags as the program does.
func parses(t *testing.T, name string, args []string) func(flag string) string {
	t.Helper()
	for _, cmd := range Command(io.Discard, io.Discard).Commands() {
		if cmd.Name() != name {
			continue
		}
		if err := cmd.ParseFlags(args[1:]); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return func(flag string) string { return cmd.Flags().Lookup(flag).Value.String() }
	}
	t.Fatalf("there is no kernelgate %s", name)
	return nil
}

// natsVersion returns the version of the module, which the tests use.
func natsVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`nats-server/v2 v([0-9]+\.[0-9]+)\.`).FindSubmatch(text)
	if m == nil {
		t.Fatal("go.mod names no NATS server")
	}
	return string(m[1])
}

// documents decodes every document of a file, and refuses unknown fields.
func documents[T any](t *testing.T, file string) (all []T) {
	t.Helper()
	text, err := os.ReadFile(clusterDir + file)
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		d.KnownFields(true)
		var one T
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, one)
	}
}

func compose(t *testing.T) (all []container) {
	type service struct {
		Image       string
		Build       struct{ Context, Dockerfile, Target string }
		Command     []string
		Environment map[string]string
		Volumes     []string
		Ports       []string
		Networks    map[string]struct{ Aliases []string }
		NetworkMode string   `yaml:"network_mode"`
		SecurityOpt []string `yaml:"security_opt"`
		CapDrop     []string `yaml:"cap_drop"`
		DependsOn   []string `yaml:"depends_on"`
		Restart     string
	}
	file := documents[struct {
		Name     string
		Services map[string]service
		Volumes  map[string]struct{}
	}](t, "compose.yaml")[0]
	used := map[string]bool{}
	for name, s := range file.Services {
		c := container{host: name, image: s.Image, args: s.Command}
		if a := s.Networks["default"].Aliases; len(a) == 1 {
			c.host = a[0]
		}
		for _, v := range s.Volumes {
			from, to, _ := strings.Cut(v, ":")
			to, _, _ = strings.Cut(to, ":")
			c.mounts = append(c.mounts, to)
			if _, ok := file.Volumes[from]; !ok && !strings.HasPrefix(from, "./secrets") && !strings.HasPrefix(from, "./tls") {
				if _, err := os.Stat(clusterDir + from); err != nil {
					t.Errorf("%s mounts %s: %v", name, from, err)
				}
			}
			used[from] = true
		}
		if s.Build.Context != "" {
			if _, err := os.Stat(filepath.Join(clusterDir, s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Error(err)
			}
		}
		if other, ok := strings.CutPrefix(s.NetworkMode, "service:"); ok && !slices.Contains(s.DependsOn, other) {
			t.Errorf("%s shares the network of %s, and may be started before it", name, other)
		}
		for _, other := range append(s.DependsOn, strings.TrimPrefix(s.NetworkMode, "service:")) {
			if _, ok := file.Services[other]; !ok && other != "" {
				t.Errorf("%s needs %s, which is not there", name, other)
			}
		}
		all = append(all, c)
	}
	for v := range file.Volumes {
		if !used[v] {
			t.Errorf("nobody uses the volume %s", v)
		}
	}
	return all
}
