package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// TestKubernetesBackup runs the command of the nightly backup, with a stand-in for kernelgate that writes a file or fails. It keeps the
// last 14 backups, and a failed one costs none.
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
	programs, backups := t.TempDir(), t.TempDir()
	stand := func(program, script string) {
		t.Helper()
		if err := os.Chmod(put(t, []byte("#!/bin/sh\n"+script), programs, program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	stand("kernelgate", `[ $# = 4 ] && [ "$1 $2 $3" = "backup --config /etc/kernelgate/kernelgate.yaml" ] || exit 2
echo half >"$4"
[ -z "$FAIL" ] && echo "$DAY" >"$4"`)
	stand("date", `[ "$*" = '-u +%Y%m%dT%H%M%SZ' ] && echo "202611${DAY}T031700Z"`)
	run := func(day int, env ...string) error {
		t.Helper()
		cmd := exec.Command(c.Command[0], c.Command[1:]...)
		cmd.Env = append(os.Environ(), append(env, "PATH="+programs+":"+os.Getenv("PATH"), "BACKUPS="+backups, fmt.Sprintf("DAY=%02d", day))...)
		out, err := cmd.CombinedOutput()
		if err != nil && len(env) == 0 {
			t.Fatalf("day %d: %v\n%s", day, err, out)
		}
		return err
	}
	kept := func() (names []string) {
		t.Helper()
		list, err := os.ReadDir(backups)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(f.Name(), "journal-202611"), "T031700Z"))
		}
		return names
	}
	put(t, []byte("not a backup"), backups, "notes")
	for day := 1; day <= 20; day++ {
		run(day)
	}
	const want = "07 08 09 10 11 12 13 14 15 16 17 18 19 20 notes"
	if got := strings.Join(kept(), " "); got != want {
		t.Errorf("kept are %s", got)
	}
	if err := run(21, "FAIL=yes"); err == nil {
		t.Error("a failed backup counts as a good one")
	}
	if got := strings.Join(kept(), " "); got != strings.Replace(want, "notes", "21T031700Z.partial notes", 1) {
		t.Errorf("after a failed backup, kept are %s", got)
	}
	run(22)
	if got := strings.Join(kept(), " "); got != "08 09 10 11 12 13 14 15 16 17 18 19 20 22 notes" {
		t.Errorf("after the next one, kept are %s", got)
	}
	if text := slurp(t, filepath.Join(backups, "journal-20261122T031700Z")); string(text) != "22\n" {
		t.Errorf("the newest backup is %q", text)
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
