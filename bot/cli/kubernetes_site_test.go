package cli

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// templates returns the pod template of each object as text.
func (s *site) templates() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for d := yaml.NewDecoder(bytes.NewReader(s.render())); ; {
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Spec     struct {
				Template    yaml.Node
				JobTemplate yaml.Node `yaml:"jobTemplate"`
			}
		}
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			s.t.Fatal(err)
		}
		for _, template := range []yaml.Node{o.Spec.Template, o.Spec.JobTemplate} {
			if template.IsZero() {
				continue
			}
			text, err := yaml.Marshal(&template)
			if err != nil {
				s.t.Fatal(err)
			}
			all[o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name] = string(text)
		}
	}
}

// TestKubernetesRollout checks that a changed secret, configuration or image changes the template of the pods that use it, so that
// Kubernetes replaces them, and of no other pods.
func TestKubernetesRollout(t *testing.T) {
	s := newSite(t)
	const bot, nats, backup = "StatefulSet kernelgate/bot", "StatefulSet kernelgate/nats", "CronJob kernelgate/backup"
	const cpu, gpu = "StatefulSet kernelgate-runners/cpu", "StatefulSet kernelgate-runners/gpu"
	before := s.templates()
	if again := s.templates(); !reflect.DeepEqual(before, again) {
		t.Fatal("the same files give different templates")
	}
	script := func(args ...string) func() {
		return func() { command(t, append([]string{kubernetesDir + "create-secrets.sh"}, args...)...) }
	}
	file := func(name, more string) func() {
		return func() {
			at := filepath.Join(s.dir, name)
			put(t, append(slurp(t, at), more...), at)
		}
	}
	secrets := filepath.Join(s.dir, "secrets")
	for _, change := range []struct {
		what string
		do   func()
		want []string
	}{
		{"the bots' configuration", file("kernelgate.yaml", "# changed\n"), []string{backup, bot}},
		{"the configuration of NATS", file("manifests/control/nats.conf", "# changed\n"), []string{nats}},
		{"the App's key", file("secrets/bot/private-key.pem", "changed\n"), []string{bot}},
		{"the token of a runner", file("secrets/tokens/cpu-0", "changed\n"), []string{cpu, gpu, bot}},
		{"a new runner", script(secrets, "gpu-1"), []string{cpu, gpu, bot}},
		{"renewed certificates", script("--renew", secrets), []string{backup, bot, nats}},
		{"a new CA", script("--renew-ca", secrets), []string{backup, cpu, gpu, bot, nats}},
		{"a new image of the bot", func() { put(t, []byte(s.releaseImages(digest('d'), digest('c'))), s.dir, "images/kustomization.yaml") }, []string{backup, bot}},
	} {
		change.do()
		after := s.templates()
		var changed []string
		for name := range after {
			if after[name] != before[name] {
				changed = append(changed, name)
			}
		}
		slices.Sort(changed)
		slices.Sort(change.want)
		if !slices.Equal(changed, change.want) {
			t.Errorf("%s replaces the pods of %q, want %q", change.what, changed, change.want)
		}
		before = after
	}
}

// TestKubernetesReplicas checks that an operator can have more runners without a change in the manifests.
func TestKubernetesReplicas(t *testing.T) {
	s := newSite(t)
	replace(t, filepath.Join(s.dir, "kustomization.yaml"), "# replicas: ", "replicas: ")
	if n := s.objects()["StatefulSet kernelgate-runners/gpu"].Spec.Replicas; n != 2 {
		t.Errorf("there are %d runners with a GPU", n)
	}
}

// TestKubernetesBackup checks that the nightly backup runs with as few rights as a bot, and with flags that kernelgate has.
func TestKubernetesBackup(t *testing.T) {
	all := newSite(t).objects()
	job := all["CronJob kernelgate/backup"]
	pod, ok := job.pod()
	if !ok || job.Spec.Concurrency != "Forbid" || pod.Account != "backup" || all["ServiceAccount kernelgate/backup"].Kind == "" || len(pod.Containers) != 1 {
		t.Fatalf("the CronJob is %+v", job)
	}
	c := pod.Containers[0]
	if bot, _ := all["StatefulSet kernelgate/bot"].pod(); c.Image != bot.Containers[0].Image || !reflect.DeepEqual(c.Security, bot.Containers[0].Security) || !reflect.DeepEqual(pod.Security, bot.Security) {
		t.Errorf("the backup is %+v in %+v", c, pod.Security)
	}
	if len(c.Command) < 2 || c.Command[0] != "kernelgate" || c.Command[1] != "backup" {
		t.Fatalf("it runs %v", c.Command)
	}
	flag := parses(t, "backup", c.Command[1:])
	if mounted := slices.ContainsFunc(c.Mounts, func(m kubeMount) bool { return m.MountPath == c.Command[len(c.Command)-1] }); flag("config") != "/etc/kernelgate/kernelgate.yaml" || flag("keep") != "14" || !mounted {
		t.Errorf("it runs %v", c.Command)
	}
}

// TestPrometheusRule checks that the object for the Prometheus Operator has the rules of alerts.yaml. -update writes it.
func TestPrometheusRule(t *testing.T) {
	const file = kubernetesDir + "monitoring/prometheusrule.yaml"
	alerts := slurp(t, "bot/install/alerts.yaml")
	if *update {
		_, groups, ok := bytes.Cut(alerts, []byte("\ngroups:\n"))
		if !ok {
			t.Fatal("alerts.yaml has no groups")
		}
		text := "# The rules of bot/install/alerts.yaml. Do not edit it: go test ./bot/cli -run TestPrometheusRule -update\n" +
			"# If your Prometheus selects rules by a label, add the label in your kustomization.yaml.\n" +
			"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: kernelgate, namespace: kernelgate}\nspec:\n  groups:\n"
		for line := range strings.Lines(string(groups)) {
			text += "  " + line
		}
		put(t, []byte(text), file)
	}
	var want struct{ Groups any }
	var is struct {
		Kind string
		Spec struct{ Groups any }
	}
	if err := yaml.Unmarshal(alerts, &want); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(slurp(t, file), &is); err != nil {
		t.Fatal(err)
	}
	if is.Kind != "PrometheusRule" || want.Groups == nil || !reflect.DeepEqual(want.Groups, is.Spec.Groups) {
		t.Errorf("%s does not have the rules of alerts.yaml (go test ./bot/cli -run TestPrometheusRule -update)", file)
	}
}
