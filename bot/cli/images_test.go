package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inPodman skips a test that starts containers unless make operate-test runs it. .ci/operate-release builds
// the images and runs these tests. podman keeps its images and containers in a temporary folder there.
func inPodman(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv("KERNELGATE_IMAGES") == "" {
		t.Skip("make operate-test runs it, as root and with podman")
	}
	return operating(t)
}

// podman runs a command and returns its output.
func podman(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("podman", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("podman %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// sandboxed are the options that bot/install/Dockerfile names for the runner. With them, the runner's
// sandbox can create user namespaces with a /proc in them, and needs no capability.
var sandboxed = []string{"--cap-drop=ALL", "--security-opt=no-new-privileges", "--security-opt=seccomp=unconfined", "--security-opt=systempaths=unconfined"}

// TestOperateImages runs both images until they have judged a pull request. The bot has no privilege and a
// read-only file system, and the runner has the options that its sandbox needs.
func TestOperateImages(t *testing.T) {
	ctx := inPodman(t)
	w, etc, port := newHub(t), t.TempDir(), freePort(t)
	put(t, fmt.Appendf(nil, "listen: 127.0.0.1:%s\ngithub: {app_id: %d, api_url: '%s', git_url: '%s', private_key_file: /etc/kernelgate/key.pem, webhook_secret_file: /etc/kernelgate/secret}\nrunners: [{name: box, labels: [cpu], token_file: /etc/kernelgate/token}]\n"+hubPages,
		port, w.app.ID(), w.hub.URL(), w.hub.URL()), etc, "kernelgate.yaml")
	for name, text := range map[string][]byte{"key.pem": w.app.PrivateKeyPEM(), "secret": []byte(hubSecret), "token": []byte("a token for the runner, long enough")} {
		file := put(t, text, etc, name)
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, 10001, 10001); err != nil {
			t.Fatal(err)
		}
	}
	for dir := etc; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) { // the folders of a test are private
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range []string{"bot", "runner"} {
				out, _ := exec.Command("podman", "logs", "--tail=40", name).CombinedOutput()
				t.Logf("%s:\n%s", name, out)
			}
		}
		podman(t, "rm", "--force", "--volumes", "--ignore", "bot", "runner")
	})
	podman(t, "run", "--detach", "--name=bot", "--network=host", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges",
		"--volume="+etc+":/etc/kernelgate:ro", "kernelgate", "serve", "--config", "/etc/kernelgate/kernelgate.yaml")
	alone := append([]string{"run", "--detach", "--name=runner", "--network=host", "--volume=" + etc + "/token:/etc/kernelgate/token:ro"}, sandboxed...)
	podman(t, append(alone, "kernelgate-runner", "runner", "--server=http://127.0.0.1:"+port, "--name=box", "--labels=cpu", "--token-file=/etc/kernelgate/token", "--state=/var/lib/kernelgate")...)

	ended := func() error {
		if got := podman(t, "inspect", "--format={{.State.Running}}", "bot", "runner"); got != "true\ntrue" {
			return fmt.Errorf("a container has ended: %q", got)
		}
		return nil
	}
	for _, metric := range []string{"kernelgate_ready 1", `kernelgate_runners{label="cpu",state="idle"} 1`} {
		if err := shows(ctx, "http://127.0.0.1:"+port, metric, ended); err != nil {
			t.Fatal(err)
		}
	}
	w.app.SetHook("http://127.0.0.1:"+port+"/webhook", hubSecret)
	proves(ctx, t, w, "http://127.0.0.1:"+port, "image")
	podman(t, "stop", "--time=45", "runner", "bot")
	if got := podman(t, "inspect", "--format={{.State.ExitCode}}", "bot", "runner"); got != "0\n0" {
		t.Errorf("the containers ended with %q", got)
	}
	result(t, "the bot on a read-only file system, the runner with its sandbox: a faster kernel passes, a slower one does not, and both stop with status 0")
}

// TestOperateCompose starts two bots, three NATS servers and a runner from compose.yaml. It creates the
// secrets with the commands of the README next to compose.yaml.
func TestOperateCompose(t *testing.T) {
	ctx := inPodman(t)
	w, dir := newHub(t), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(clusterDir)); err != nil {
		t.Fatal(err)
	}
	put(t, w.app.PrivateKeyPEM(), dir, "private-key.pem")
	shell := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, "bash", "-euc", script)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	shell(firstBlock(t, clusterDir+"README.md"))
	if modes := shell("stat --format=%a secrets secrets/* tls/*.key | sort | uniq"); modes != "600\n700\n" {
		t.Errorf("the secrets have the modes %q", modes)
	}
	shell("chown -R 10001:10001 secrets")
	for _, folder := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(folder, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	hub := "http://host.containers.internal:" + forward(t, strings.TrimPrefix(w.hub.URL(), "http://"))
	replace(t, filepath.Join(dir, "kernelgate.yaml"), "app_id: 123456", fmt.Sprintf("app_id: %d\n  api_url: %s\n  git_url: %[2]s", w.app.ID(), hub))
	ports := []string{freePort(t), freePort(t)}
	for i, port := range ports {
		replace(t, filepath.Join(dir, "compose.yaml"), fmt.Sprintf("127.0.0.1:808%d:8080", i), "127.0.0.1:"+port+":8080")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(podman(t, "ps", "--all"))
			for _, name := range strings.Fields(podman(t, "ps", "--all", "--format={{.Names}}")) {
				out, _ := exec.Command("podman", "logs", "--tail=15", name).CombinedOutput()
				t.Logf("%s:\n%s", name, out)
			}
		}
		cmd := exec.Command("podman-compose", "-p", "kernelgate", "down", "--volumes")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	shell("podman-compose -p kernelgate up --detach")
	for i, port := range ports {
		if err := shows(ctx, "http://127.0.0.1:"+port, "kernelgate_ready 1", func() error { return nil }); err != nil {
			t.Fatalf("bot-%d: %v", i, err)
		}
	}
	w.app.SetHook("http://127.0.0.1:"+ports[0]+"/webhook", strings.TrimSpace(shell("cat secrets/webhook-secret")))
	verdicts(ctx, t, w, "compose", 1)
	services := strings.Fields(podman(t, "ps", "--filter=status=running", "--format={{.Names}}"))
	if len(services) != 8 {
		t.Errorf("%d services run: %v", len(services), services)
	}
	result(t, "podman-compose: %d services run, the secrets have mode 600, a pull request passes", len(services))
}

// firstBlock returns the first shell commands of a document.
func firstBlock(t *testing.T, file string) string {
	t.Helper()
	m := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(slurp(t, file))
	if m == nil {
		t.Fatalf("%s has no commands", file)
	}
	return string(m[1])
}

func replace(t *testing.T, file, old, text string) {
	t.Helper()
	content := string(slurp(t, file))
	if strings.Count(content, old) != 1 {
		t.Fatalf("%s does not have %q once", file, old)
	}
	put(t, []byte(strings.Replace(content, old, text, 1)), file)
}

// forward passes connections from containers on to an address on the loopback, and returns its port.
func forward(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			go func() {
				defer from.Close()
				c, err := net.Dial("tcp", to)
				if err != nil {
					return // the container sees that the connection ends
				}
				defer c.Close()
				done := make(chan struct{}, 2)
				for _, pair := range [][2]net.Conn{{from, c}, {c, from}} {
					go func() {
						_, _ = io.Copy(pair[0], pair[1]) // likewise
						done <- struct{}{}
					}()
				}
				<-done
			}()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestRunnerOptions checks that the Dockerfile, compose.yaml and the documents name the options for the
// sandbox that TestOperateImages uses.
func TestRunnerOptions(t *testing.T) {
	file := documents[struct {
		Name     string
		Services map[string]map[string]any
		Volumes  map[string]any
	}](t, "compose.yaml")[0]
	var composed []string
	for _, o := range file.Services["runner-0"]["security_opt"].([]any) {
		composed = append(composed, "--security-opt="+o.(string))
	}
	if drop := file.Services["runner-0"]["cap_drop"]; fmt.Sprint(drop) != "[ALL]" || !slices.Equal(composed, sandboxed[1:]) {
		t.Errorf("compose.yaml: cap_drop %v, %v, want %v", drop, composed, sandboxed)
	}
	for _, name := range []string{"bot/install/Dockerfile", "docs/operate/install.md"} {
		text := strings.ReplaceAll(string(slurp(t, name)), "--cap-drop ALL", "--cap-drop=ALL")
		text = strings.ReplaceAll(text, "--security-opt ", "--security-opt=")
		for _, option := range sandboxed {
			if !strings.Contains(text, option) {
				t.Errorf("%s does not name %s", name, option)
			}
		}
	}
}
