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

// A container holds the fields of a compose service or a Kubernetes pod that concern us.
type container struct {
	host   string // name for other containers
	image  string
	args   []string
	mounts []string // paths inside of the container
}

// TestCluster checks that the programs understand what compose and Kubernetes pass to them, and
// that hosts, ports, flags, files and names are consistent.
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
	for name, all := range map[string][]container{"compose": compose(t), "kubernetes": kubernetes(t)} {
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

// These types have the Kubernetes fields that the files use. A misspelt field is unknown and thus
// refused.
type (
	named  struct{ Name string }
	object struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
		Spec       struct {
			ClusterIP                string         `yaml:"clusterIP"`
			PublishNotReadyAddresses bool           `yaml:"publishNotReadyAddresses"`
			MaxUnavailable           int            `yaml:"maxUnavailable"`
			Selector                 map[string]any `yaml:"selector"`
			Ports                    []port         `yaml:"ports"`
			ServiceName              string         `yaml:"serviceName"`
			Replicas                 int            `yaml:"replicas"`
			PodManagementPolicy      string         `yaml:"podManagementPolicy"`
			Template                 struct {
				Metadata metadata
				Spec     pod
			}
			VolumeClaimTemplates []struct {
				Metadata metadata
				Spec     struct {
					AccessModes []string `yaml:"accessModes"`
					Resources   struct{ Requests map[string]string }
				}
			} `yaml:"volumeClaimTemplates"`
		}
	}
	metadata struct {
		Name                string
		Labels, Annotations map[string]string
	}
	port struct {
		Name          string
		Port          int
		ContainerPort int `yaml:"containerPort"`
	}
	probe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
		Delay   int                         `yaml:"initialDelaySeconds"`
		Failure int                         `yaml:"failureThreshold"`
	}
	pod struct {
		Affinity        map[string]any
		HostUsers       *bool          `yaml:"hostUsers"`
		Automount       *bool          `yaml:"automountServiceAccountToken"`
		SecurityContext map[string]any `yaml:"securityContext"`
		Grace           int            `yaml:"terminationGracePeriodSeconds"`
		Containers      []struct {
			Name, Image string
			Args        []string
			Env         []struct {
				Name      string
				ValueFrom struct {
					FieldRef struct {
						FieldPath string `yaml:"fieldPath"`
					} `yaml:"fieldRef"`
				} `yaml:"valueFrom"`
			}
			Ports           []port
			ReadinessProbe  *probe         `yaml:"readinessProbe"`
			LivenessProbe   *probe         `yaml:"livenessProbe"`
			SecurityContext map[string]any `yaml:"securityContext"`
			VolumeMounts    []struct {
				Name      string
				MountPath string `yaml:"mountPath"`
				SubPath   string `yaml:"subPath"`
			} `yaml:"volumeMounts"`
		}
		Volumes []struct {
			Name      string
			ConfigMap named `yaml:"configMap"`
			Secret    struct {
				SecretName  string `yaml:"secretName"`
				DefaultMode int    `yaml:"defaultMode"`
				Items       []struct{ Key, Path string }
			}
		}
	}
)

func kubernetes(t *testing.T) (all []container) {
	k := documents[struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Namespace  string
		Resources  []string
		Images     []struct {
			Name    string
			NewName string `yaml:"newName"`
			NewTag  string `yaml:"newTag"`
		}
		ConfigMaps []struct {
			Name  string
			Files []string
		} `yaml:"configMapGenerator"`
	}](t, "kustomization.yaml")[0]
	readme, err := os.ReadFile(clusterDir + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{}
	for _, m := range k.ConfigMaps {
		files[m.Name] = m.Files
		for _, file := range m.Files {
			if _, err := os.Stat(clusterDir + file); err != nil {
				t.Error(err)
			}
		}
	}
	var objects []object
	for _, file := range k.Resources {
		objects = append(objects, documents[object](t, file)...)
	}
	services := map[string]object{}
	for _, o := range objects {
		if o.Kind == "Service" {
			services[o.Metadata.Name] = o
		}
	}
	for _, o := range objects {
		if o.Kind != "StatefulSet" {
			continue
		}
		own := o.Spec.Template
		for _, s := range services {
			if s.Spec.Selector["app"] != own.Metadata.Labels["app"] {
				continue
			}
			for _, p := range s.Spec.Ports {
				offered := false
				for _, c := range own.Spec.Containers {
					offered = offered || slices.ContainsFunc(c.Ports, func(own port) bool { return own.ContainerPort == p.Port && own.Name == p.Name })
				}
				if !offered {
					t.Errorf("the service %s leads to %s %d, where nobody listens", s.Metadata.Name, p.Name, p.Port)
				}
			}
		}
		volumes := map[string]bool{}
		for _, v := range own.Spec.Volumes {
			volumes[v.Name] = true
			if v.ConfigMap.Name != "" && files[v.ConfigMap.Name] == nil {
				t.Errorf("%s wants the configuration %s, which is not made", o.Metadata.Name, v.ConfigMap.Name)
			}
			if s := v.Secret.SecretName; s != "" && !strings.Contains(string(readme), "secret generic "+s+" ") {
				t.Errorf("the README does not say how the secret %s is made", s)
			}
		}
		for _, v := range o.Spec.VolumeClaimTemplates {
			volumes[v.Metadata.Name] = true
		}
		for i := range o.Spec.Replicas {
			for _, c := range own.Spec.Containers {
				it := container{host: fmt.Sprintf("%s-%d.%s", o.Metadata.Name, i, o.Spec.ServiceName), image: c.Image, args: c.Args}
				for _, m := range c.VolumeMounts {
					if !volumes[m.Name] {
						t.Errorf("%s mounts %s, which is not there", c.Name, m.Name)
					}
					it.mounts = append(it.mounts, m.MountPath)
				}
				for _, p := range []*probe{c.ReadinessProbe, c.LivenessProbe} {
					if p != nil && !slices.ContainsFunc(c.Ports, func(own port) bool { return own.Name == p.HTTPGet.Port }) {
						t.Errorf("%s is asked at %s, where it does not listen", c.Name, p.HTTPGet.Port)
					}
				}
				all = append(all, it)
			}
		}
	}
	return all
}
