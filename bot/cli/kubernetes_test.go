package cli

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/kernelgate/kernelgate/bot/serve"
)

const kubernetesDir = clusterDir + "kubernetes/"

// kubernetesTools returns the folder of kustomize and of Kubernetes' schemas.
func kubernetesTools(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(".ci/fetch-kubernetes.sh", "--check").Output()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("kustomize is missing: ", err, " (make setup)")
		}
		t.Skip("kustomize is missing (make setup)")
	}
	return strings.TrimSpace(string(out))
}

// A site is the folder of an operator. The commands of the README created it.
type site struct {
	t     *testing.T
	dir   string
	tools string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: filepath.Join(t.TempDir(), "kernelgate"), tools: kubernetesTools(t)}
	images := s.releaseImages(digest('b'), digest('c'))
	create := exec.Command("bash", "-euc", `cat >"$HOME/kernelgate_0.1.0_images.yaml"; cat go.mod >"$HOME/private-key.pem"; `+firstBlock(t, kubernetesDir+"README.md"))
	create.Env = append(os.Environ(), "HOME="+filepath.Dir(s.dir))
	create.Stdin = strings.NewReader(images)
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("the first commands of the README: %v\n%s", err, out)
	}
	replace(t, filepath.Join(s.dir, "kustomization.yaml"), "  # - manifests/ingress ", "  - manifests/ingress ")
	replace(t, filepath.Join(s.dir, "kustomization.yaml"), "  # - manifests/monitoring ", "  - manifests/monitoring ")
	return s
}

func digest(digit byte) string { return "sha256:" + strings.Repeat(string(digit), 64) }

// releaseImages returns the file of a release that names the images. A stand-in for docker says which digest an image of a
// registry has.
func (s *site) releaseImages(bot, runner string) string {
	s.t.Helper()
	docker := put(s.t, []byte("#!/bin/sh\n[ \"$1 $2 $3\" = 'buildx imagetools inspect' ] || exit 1\nprintf 'sha256:%s\\n' \"$(printf %s \"$4\" | sha256sum | cut -c-64)\"\n"), s.t.TempDir(), "docker")
	if err := os.Chmod(docker, 0o755); err != nil {
		s.t.Fatal(err)
	}
	images := exec.Command(".ci/release-images", "ghcr.io/kernelgate/kernelgate", "0.1.0", bot, runner)
	images.Env = append(os.Environ(), "PATH="+filepath.Dir(docker)+":"+os.Getenv("PATH"))
	out, err := images.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// render returns what kubectl apply -k would send.
func (s *site) render() []byte {
	s.t.Helper()
	out, err := exec.Command(filepath.Join(s.tools, "kustomize"), "build", s.dir).Output()
	if err != nil {
		exit := (*exec.ExitError)(nil)
		errors.As(err, &exit)
		s.t.Fatalf("%v: %s", err, exit.Stderr)
	}
	return out
}

// objects decodes the rendered objects. Their keys have kind, namespace and name, without the hash of generated names.
func (s *site) objects() map[string]kubeObject {
	s.t.Helper()
	all := map[string]kubeObject{}
	for d := yaml.NewDecoder(bytes.NewReader(s.render())); ; {
		var one kubeObject
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			s.t.Fatal(err)
		}
		all[one.Kind+" "+one.Metadata.Namespace+"/"+one.Metadata.Name] = one
	}
}

// TestKubernetesValidates checks the rendered manifests with the schemas of two versions of Kubernetes: the oldest version
// that the manifests support, and a new one. The schemas refuse unknown fields.
func TestKubernetesValidates(t *testing.T) {
	s := newSite(t)
	schemas, err := zip.OpenReader(filepath.Join(s.tools, "schemas.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer schemas.Close()
	var all []map[string]any
	for d := yaml.NewDecoder(bytes.NewReader(s.render())); ; {
		var one map[string]any
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	for _, version := range []string{"1.33.0", "1.37.0"} {
		valid := 0
		for _, one := range all {
			kind, api := one["kind"].(string), one["apiVersion"].(string)
			if strings.HasPrefix(api, "monitoring.coreos.com/") {
				continue // not a part of Kubernetes; TestKubernetes reads it
			}
			if err := validates(schemas, version, kind, api, one); err != nil {
				t.Errorf("%s %v for Kubernetes %s: %v", kind, one["metadata"].(map[string]any)["name"], version, err)
				continue
			}
			valid++
		}
		result(t, "%d objects of the rendered manifests are valid for Kubernetes %s (strict)", valid, version)
	}
	// The check itself must be able to fail.
	broken := maps.Clone(all[0])
	broken["sepc"] = map[string]any{}
	invalid := (*jsonschema.ValidationError)(nil)
	if err := validates(schemas, "1.37.0", broken["kind"].(string), broken["apiVersion"].(string), broken); !errors.As(err, &invalid) {
		t.Error("an unknown field is not refused: ", err)
	}
}

var apiDomain = regexp.MustCompile(`^([^./]*)(?:\.[^/]*)?/`)

func validates(schemas *zip.ReadCloser, version, kind, api string, object map[string]any) error {
	dir := "kubernetes_validate/kubernetes-json-schema/v" + version + "-local-strict/"
	c := jsonschema.NewCompiler()
	c.UseLoader(zipLoader{schemas, dir})
	schema, err := c.Compile("https://kubernetes.io/api/" + strings.ToLower(kind) + "-" + apiDomain.ReplaceAllString(api, "$1-") + ".json")
	if err != nil {
		return err
	}
	text, err := json.Marshal(object) // numbers as the schema's library wants them
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// A zipLoader reads schemas from a folder of an archive. They name each other by addresses of kubernetes.io.
type zipLoader struct {
	from *zip.ReadCloser
	dir  string
}

func (l zipLoader) Load(address string) (any, error) {
	f, err := l.from.Open(l.dir + path.Base(address))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return jsonschema.UnmarshalJSON(f)
}

// These types have the fields that the checks below read.
type (
	kubeObject struct {
		Kind     string
		Metadata struct {
			Name, Namespace string
			Labels          map[string]string
		}
		Value int
		Data  map[string]string
		Spec  struct {
			JobTemplate struct {
				Spec struct{ Template struct{ Spec kubePod } }
			} `yaml:"jobTemplate"`
			Concurrency string `yaml:"concurrencyPolicy"`
			Replicas    int
			ServiceName string `yaml:"serviceName"`
			Ports       []kubePort
			Selector    any
			Endpoints   []struct{ Port, Path string }
			Template    struct{ Spec kubePod }
			PodSelector any `yaml:"podSelector"`
			Ingress     []struct {
				From  []map[string]any
				Ports []struct{ Port int }
			}
			Rules []struct {
				HTTP struct {
					Paths []struct {
						Path    string
						Backend struct {
							Service struct {
								Name string
								Port struct{ Name string }
							}
						}
					}
				} `yaml:"http"`
			}
		}
	}
	kubePort struct {
		Name          string
		Port          int
		ContainerPort int `yaml:"containerPort"`
	}
	kubeProbe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
		TCP     struct{ Port string }       `yaml:"tcpSocket"`
	}
	kubeSecurity struct {
		NonRoot      bool  `yaml:"runAsNonRoot"`
		Escalation   *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnly     bool  `yaml:"readOnlyRootFilesystem"`
		ProcMount    string
		Capabilities struct{ Drop, Add []string }
		Seccomp      struct{ Type string } `yaml:"seccompProfile"`
	}
	kubeContainer struct {
		Name, Image   string
		Args, Command []string
		Ports         []kubePort
		Resources     struct{ Requests, Limits map[string]string }
		Security      kubeSecurity `yaml:"securityContext"`
		Startup       *kubeProbe   `yaml:"startupProbe"`
		Readiness     *kubeProbe   `yaml:"readinessProbe"`
		Liveness      *kubeProbe   `yaml:"livenessProbe"`
		Mounts        []kubeMount  `yaml:"volumeMounts"`
	}
	kubeMount struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		SubPath   string `yaml:"subPathExpr"`
	}
	kubePod struct {
		Automount *bool        `yaml:"automountServiceAccountToken"`
		HostUsers *bool        `yaml:"hostUsers"`
		Security  kubeSecurity `yaml:"securityContext"`
		Affinity  map[string]any
		Account   string `yaml:"serviceAccountName"`
		Priority  string `yaml:"priorityClassName"`
		Spread    []struct {
			Key       string `yaml:"topologyKey"`
			Otherwise string `yaml:"whenUnsatisfiable"`
		} `yaml:"topologySpreadConstraints"`
		Containers []kubeContainer
		Volumes    []kubeVolume
	}
	kubeVolume struct {
		Name   string
		Secret struct {
			SecretName string `yaml:"secretName"`
		}
		ConfigMap struct{ Name string } `yaml:"configMap"`
		EmptyDir  *struct {
			SizeLimit string `yaml:"sizeLimit"`
		} `yaml:"emptyDir"`
		Claim struct {
			Name string `yaml:"claimName"`
		} `yaml:"persistentVolumeClaim"`
	}
)

// TestKubernetes checks that every pod in the rendered manifests has the required settings. It also checks that hosts, ports,
// flags, files and names are consistent with the configuration of the bots.
func TestKubernetes(t *testing.T) {
	all := newSite(t).objects()
	config, err := serve.Load(serve.Sources{File: kubernetesDir + "control/kernelgate.yaml", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	var runners []string
	for name, o := range all {
		pod, ok := o.pod()
		if !ok {
			continue
		}
		checkPod(t, name, pod, all)
		for _, v := range pod.Volumes {
			checkVolume(t, name, o.Metadata.Namespace, v, all)
		}
		for _, c := range pod.Containers {
			checkContainer(t, name+" "+c.Name, c)
		}
		if o.Kind != "StatefulSet" {
			continue
		}
		checkSpread(t, name, pod)
		if _, ok := all["Service "+o.Metadata.Namespace+"/"+o.Spec.ServiceName]; !ok {
			t.Errorf("%s has no service %s", name, o.Spec.ServiceName)
		}
		if o.Metadata.Namespace == "kernelgate-runners" {
			for i := range o.Spec.Replicas {
				runners = append(runners, fmt.Sprintf("%s-%d", o.Metadata.Name, i))
			}
			checkRunner(t, config, o)
		}
	}
	var named []string
	for _, r := range config.Runners {
		named = append(named, r.Name)
	}
	slices.Sort(runners)
	if !slices.Equal(runners, named) {
		t.Errorf("the pods are %v, and the configuration names %v", runners, named)
	}
	checkBots(t, config, all)
	checkNetwork(t, all)
	if control, runners := all["PriorityClass /kernelgate-control"], all["PriorityClass /kernelgate-runners"]; control.Kind == "" || runners.Kind == "" || control.Value <= runners.Value {
		t.Errorf("the priority of the bots is %d, and that of runners %d", control.Value, runners.Value)
	}
}

// pod returns the pod that an object creates.
func (o kubeObject) pod() (kubePod, bool) {
	switch o.Kind {
	case "StatefulSet":
		return o.Spec.Template.Spec, true
	case "CronJob":
		return o.Spec.JobTemplate.Spec.Template.Spec, true
	}
	return kubePod{}, false
}

func checkPod(t *testing.T, name string, p kubePod, all map[string]kubeObject) {
	t.Helper()
	if p.Automount == nil || *p.Automount || !p.Security.NonRoot {
		t.Errorf("%s: service-account token %v, non-root %v", name, p.Automount, p.Security.NonRoot)
	}
	if class := p.Priority; class != "" && all["PriorityClass /"+class].Kind == "" {
		t.Errorf("%s has the priority %s, which does not exist", name, class)
	}
}

// checkSpread checks that pods of one kind do not share a machine, or a zone if there are several.
func checkSpread(t *testing.T, name string, p kubePod) {
	t.Helper()
	want := "kernelgate-control"
	if strings.Contains(name, "kernelgate-runners/") {
		want = "kernelgate-runners"
	}
	if p.Affinity["podAntiAffinity"] == nil || p.Priority != want {
		t.Errorf("%s has the affinity %v and the priority %q", name, p.Affinity, p.Priority)
	}
	if len(p.Spread) != 1 || p.Spread[0].Key != "topology.kubernetes.io/zone" || p.Spread[0].Otherwise != "ScheduleAnyway" {
		t.Errorf("%s is spread by %+v", name, p.Spread)
	}
}

// checkVolume checks that the Secret or ConfigMap of a volume is created together with the pod, under a name that changes with its
// content, and that other volumes have a limit.
func checkVolume(t *testing.T, pod, namespace string, v kubeVolume, all map[string]kubeObject) {
	t.Helper()
	for kind, generated := range map[string]string{"Secret": v.Secret.SecretName, "ConfigMap": v.ConfigMap.Name} {
		if generated == "" {
			continue
		}
		if o := all[kind+" "+namespace+"/"+generated]; len(o.Data) == 0 || !regexp.MustCompile(`-[a-z0-9]{10}$`).MatchString(generated) {
			t.Errorf("%s: the %s %s does not exist, or its name has no hash", pod, kind, generated)
		}
	}
	if v.EmptyDir != nil && v.EmptyDir.SizeLimit == "" {
		t.Errorf("%s: the volume %s has no limit", pod, v.Name)
	}
	if claim := v.Claim.Name; claim != "" && all["PersistentVolumeClaim "+namespace+"/"+claim].Kind == "" {
		t.Errorf("%s: the claim %s does not exist", pod, claim)
	}
}

func checkContainer(t *testing.T, name string, c kubeContainer) {
	t.Helper()
	if c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" || c.Resources.Limits["memory"] == "" {
		t.Errorf("%s has no resources: %v", name, c.Resources)
	}
	if c.Resources.Requests["ephemeral-storage"] == "" || c.Resources.Limits["ephemeral-storage"] == "" {
		t.Errorf("%s may fill the disk of its machine: %v", name, c.Resources)
	}
	if !regexp.MustCompile(`:[0-9]+\.[0-9]+\.[0-9]+[a-z-]*@sha256:[0-9a-f]{64}$`).MatchString(c.Image) {
		t.Errorf("%s: the image %s is not pinned", name, c.Image)
	}
	if c.Security.Escalation == nil || *c.Security.Escalation || !slices.Equal(c.Security.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("%s has privileges: %+v", name, c.Security)
	}
	for _, p := range []*kubeProbe{c.Startup, c.Readiness, c.Liveness} {
		if p != nil && !slices.ContainsFunc(c.Ports, func(own kubePort) bool { return own.Name == p.HTTPGet.Port || own.Name == p.TCP.Port }) {
			t.Errorf("%s is probed at %+v, where it does not listen", name, p)
		}
	}
	if len(c.Ports) > 0 && c.Readiness == nil {
		t.Errorf("%s has no readiness probe", name)
	}
}

// checkRunner checks that a runner has whole CPUs, requests that equal the limits (the class Guaranteed), and a token that no
// other pod has. It also checks that the sandbox has its two options and no capability.
func checkRunner(t *testing.T, config serve.Config, o kubeObject) {
	t.Helper()
	pod := o.Spec.Template.Spec
	c := pod.Containers[0]
	if len(pod.Containers) != 1 || !maps.Equal(c.Resources.Requests, c.Resources.Limits) || !regexp.MustCompile(`^[0-9]+$`).MatchString(c.Resources.Limits["cpu"]) {
		t.Errorf("the runner %s is not Guaranteed, or has parts of a CPU: %+v", o.Metadata.Name, c.Resources)
	}
	if pod.HostUsers == nil || *pod.HostUsers || c.Security.Seccomp.Type != "Unconfined" || len(c.Security.Capabilities.Add) > 0 {
		t.Errorf("the sandbox of %s: host users %v, %+v", o.Metadata.Name, pod.HostUsers, c.Security)
	}
	token := slices.IndexFunc(c.Mounts, func(m kubeMount) bool { return m.Name == "tokens" })
	flag := parses(t, "runner", c.Args)
	if token < 0 || c.Mounts[token].SubPath != "$(POD_NAME)" || c.Mounts[token].MountPath != flag("token-file") || flag("name") != "$(POD_NAME)" {
		t.Errorf("the runner %s does not have its own token only: %+v", o.Metadata.Name, c.Mounts)
	}
	for _, r := range config.Runners {
		if strings.HasPrefix(r.Name, o.Metadata.Name+"-") && flag("labels") != "["+strings.Join(r.Labels, ",")+"]" {
			t.Errorf("%s offers %s, and may offer %v", r.Name, flag("labels"), r.Labels)
		}
	}
	if flag("server") != "[https://bot-0.bot.kernelgate.svc:8443,https://bot-1.bot.kernelgate.svc:8443]" {
		t.Errorf("the runner asks %s", flag("server"))
	}
}

func checkBots(t *testing.T, config serve.Config, all map[string]kubeObject) {
	t.Helper()
	bot, nats := all["StatefulSet kernelgate/bot"], all["StatefulSet kernelgate/nats"]
	if bot.Spec.Replicas != 2 || nats.Spec.Replicas != 3 || config.Replicas != 3 || len(config.NATS) != 3 {
		t.Errorf("%d bots, %d NATS servers, %d copies on %v", bot.Spec.Replicas, nats.Spec.Replicas, config.Replicas, config.NATS)
	}
	for i, address := range config.NATS {
		if want := fmt.Sprintf("tls://nats-%d.nats:4222", i); address != want {
			t.Errorf("the bots ask %s instead of %s", address, want)
		}
	}
	for _, budget := range []string{"bot", "nats"} {
		if _, ok := all["PodDisruptionBudget kernelgate/"+budget]; !ok {
			t.Errorf("%s has no disruption budget", budget)
		}
	}
	c := bot.Spec.Template.Spec.Containers[0]
	parses(t, "serve", c.Args)
	files := []string{c.Args[2], config.Data, config.GitHub.PrivateKeyFile, config.GitHub.WebhookSecretFile[0], config.Operator, config.NATSRoots, config.NATSCert, config.NATSKey}
	for _, r := range config.Runners {
		files = append(files, r.TokenFile)
	}
	for _, file := range files {
		if !slices.ContainsFunc(c.Mounts, func(m kubeMount) bool { return m.MountPath == file || m.MountPath == path.Dir(file) }) {
			t.Errorf("the bot has no %s", file)
		}
	}
	service := all["Service kernelgate/kernelgate"]
	monitor := all["ServiceMonitor kernelgate/kernelgate"]
	if len(monitor.Spec.Endpoints) != 1 || monitor.Spec.Endpoints[0].Port != service.Spec.Ports[0].Name || service.Metadata.Labels["app"] != "bot" {
		t.Errorf("Prometheus asks %+v of %+v", monitor.Spec.Endpoints, service)
	}
	web := all["Ingress kernelgate/kernelgate"].Spec.Rules[0].HTTP.Paths
	if len(web) != 1 || web[0].Path != "/webhook" || web[0].Backend.Service.Name != "kernelgate" || web[0].Backend.Service.Port.Name != service.Spec.Ports[0].Name {
		t.Errorf("the Ingress shows %+v", web)
	}
	for namespace, profile := range map[string]string{"kernelgate": "restricted", "kernelgate-runners": "privileged"} {
		if got := all["Namespace /"+namespace].Metadata.Labels["pod-security.kubernetes.io/enforce"]; got != profile {
			t.Errorf("the namespace %s enforces %q", namespace, got)
		}
	}
	caddy, errA := os.ReadFile(clusterDir + "Caddyfile")
	same, errB := os.ReadFile(kubernetesDir + "control/Caddyfile")
	if err := errors.Join(errA, errB); err != nil || !bytes.Equal(caddy, same) {
		t.Errorf("the two files Caddyfile differ (%v)", err)
	}
	if image := nats.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, "nats:"+natsVersion(t)+".") {
		t.Errorf("NATS is %s; the tests run with %s", image, natsVersion(t))
	}
}

// checkNetwork checks that only bots, the backup and other NATS servers can reach the journal.
func checkNetwork(t *testing.T, all map[string]kubeObject) {
	t.Helper()
	if deny := all["NetworkPolicy kernelgate/deny"]; deny.Kind == "" || len(deny.Spec.Ingress) > 0 || fmt.Sprint(deny.Spec.PodSelector) != "map[]" {
		t.Errorf("the rule for all pods is %+v", deny)
	}
	reached := map[int]string{}
	for _, rule := range all["NetworkPolicy kernelgate/nats"].Spec.Ingress {
		for _, p := range rule.Ports {
			reached[p.Port] += fmt.Sprint(rule.From)
		}
	}
	const bots, servers = "[map[podSelector:map[matchLabels:map[app:bot]]]]", "[map[podSelector:map[matchLabels:map[app:nats]]]]"
	const backup = "[map[podSelector:map[matchLabels:map[app:backup]]]]"
	if want := map[int]string{4222: bots + backup, 8222: bots, 6222: servers}; !maps.Equal(reached, want) {
		t.Errorf("NATS is reached by %v", reached)
	}
	if rule := all["NetworkPolicy kernelgate-runners/runners"]; rule.Kind == "" || len(rule.Spec.Ingress) > 0 {
		t.Errorf("runners are reached by %+v", rule.Spec.Ingress)
	}
}
