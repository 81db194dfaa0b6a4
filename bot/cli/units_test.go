package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A box is a systemd that was started for the test. Commands can be run in it.
type box struct {
	t   testing.TB
	in  io.WriteCloser
	out *bufio.Reader
	err *strings.Builder
	cmd *exec.Cmd
}

// asRoot prepares a command as root. It works for root, and for users with passwordless sudo, as in
// CI.
func asRoot(ctx context.Context, args ...string) (*exec.Cmd, error) {
	if os.Geteuid() == 0 {
		return exec.CommandContext(ctx, args[0], args[1:]...), nil
	}
	if err := exec.CommandContext(ctx, "sudo", "-n", "true").Run(); err != nil {
		return nil, fmt.Errorf("only root can start systemd, and sudo does not work without a password: %w", err)
	}
	return exec.CommandContext(ctx, "sudo", append([]string{"-n"}, args...)...), nil
}

// newBox boots systemd with these files over a copy of the host's.
func newBox(t testing.TB, files string) *box {
	t.Helper()
	if _, err := os.Stat("/usr/lib/systemd/systemd"); err != nil {
		leaveOut(t, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	cmd, err := asRoot(ctx, "bot/install/testdata/systemd-box", files)
	if err != nil {
		cancel()
		leaveOut(t, err)
	}
	b := &box{t: t, cmd: cmd, err: &strings.Builder{}}
	cmd.Stderr = b.err
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	b.in, b.out = in, bufio.NewReader(out)
	t.Cleanup(func() { // the box ends when its stdin is closed
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the box: %v\n%s", err, b.err)
		}
		cancel()
	})
	if line, err := b.out.ReadString('\n'); err != nil || line != "booted\n" {
		in.Close()
		_ = cmd.Wait() // its output says why it failed
		t.Fatalf("the box: %q, %v\n%s", line, err, b.err)
	}
	return b
}

// leaveOut skips a test that this machine cannot run. In CI the test fails instead.
func leaveOut(t testing.TB, why error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// run returns the output of a command in the box, and its exit status.
func (b *box) run(command string) (string, int) {
	b.t.Helper()
	if _, err := io.WriteString(b.in, command+"\n"); err != nil {
		b.t.Fatal(err)
	}
	var text strings.Builder
	for {
		line, err := b.out.ReadString('\n')
		if err != nil {
			b.t.Fatalf("%s: %v\n%s%s", command, err, text.String(), b.err)
		}
		if n, ok := strings.CutPrefix(line, "exit "); ok {
			status, err := strconv.Atoi(strings.TrimSpace(n))
			if err != nil {
				b.t.Fatal(err)
			}
			return text.String(), status
		}
		text.WriteString(line)
	}
}

// must is run for a command that has to succeed.
func (b *box) must(command string) string {
	b.t.Helper()
	text, status := b.run(command)
	if status != 0 {
		b.t.Fatalf("%s: exit status %d\n%s", command, status, text)
	}
	return text
}

// freePort returns an unused port of the loopback address.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestUnits starts the bot and a runner from the shipped units, under a real systemd and as
// docs/operate/install.md says, on a host without the group render. The runner must pass its
// self-test, which needs the sandbox, and measure the kernels of two pull requests: the faster one passes, the slower one does not.
func TestUnits(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		leaveOut(t, err)
	}
	w := newHub(t)
	files, port := t.TempDir(), freePort(t)
	etc := "etc/kernelgate"
	program, err := exec.LookPath("kernelgate")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(files, "usr/local/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-L", program, filepath.Join(files, "usr/local/bin/kernelgate")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, unit := range []string{"kernelgate.service", "kernelgate-runner.service"} {
		put(t, slurp(t, "bot/install/"+unit), files, "etc/systemd/system", unit)
	}
	put(t, w.app.PrivateKeyPEM(), files, etc, "private-key.pem")
	put(t, []byte(hubSecret), files, etc, "webhook-secret")
	put(t, []byte("a token for the runner, long enough"), files, etc, "runner.token")
	put(t, fmt.Appendf(nil, "listen: 127.0.0.1:%s\ngithub: {app_id: %d, api_url: '%s', git_url: '%s'}\nrunners: [{name: box, labels: [cpu], token_file: /run/credentials/kernelgate.service/box.token}]\n"+hubPages,
		port, w.app.ID(), w.hub.URL(), w.hub.URL()), files, etc, "kernelgate.yaml")
	put(t, fmt.Appendf(nil, "KERNELGATE_SERVER=http://127.0.0.1:%s\nKERNELGATE_NAME=box\n", port), files, etc, "runner.env")
	put(t, []byte("[Service]\nLoadCredential=box.token:/etc/kernelgate/runner.token\n"), files, "etc/systemd/system/kernelgate.service.d", "runner.conf")

	b := newBox(t, files)
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := b.run("journalctl --no-pager -o cat -u kernelgate -u kernelgate-runner | tail -n 60")
			t.Log(log)
		}
	})
	b.must("chown -R 0:0 /etc/kernelgate && chmod 711 /etc/kernelgate && chmod 600 /etc/kernelgate/*token /etc/kernelgate/*secret /etc/kernelgate/*.pem")
	b.must("useradd --system --shell /usr/sbin/nologin kernelgate-runner")
	b.must("if getent group render; then groupmod --new-name elsewhere render; fi")
	b.must("systemd-analyze verify kernelgate.service kernelgate-runner.service")
	b.must("systemctl start kernelgate kernelgate-runner && ! systemctl --quiet is-failed kernelgate kernelgate-runner")

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	restarted := func() error {
		if said, status := b.run("systemctl show -p NRestarts --value kernelgate kernelgate-runner"); status != 0 || said != "0\n\n0\n" {
			return fmt.Errorf("one of the units has failed: restarts %q", said)
		}
		return nil
	}
	for _, metric := range []string{"kernelgate_ready 1", `kernelgate_runners{label="cpu",state="idle"} 1`} {
		if err := shows(ctx, "http://127.0.0.1:"+port, metric, restarted); err != nil {
			t.Fatal(err)
		}
	}
	w.app.SetHook("http://127.0.0.1:"+port+"/webhook", hubSecret)
	proves(ctx, t, w, "http://127.0.0.1:"+port, "units")
	if err := restarted(); err != nil {
		t.Error(err)
	}
	b.must("systemctl stop kernelgate-runner kernelgate")
	if said := b.must("systemctl show -p Result --value kernelgate kernelgate-runner"); said != "success\n\nsuccess\n" {
		t.Errorf("they ended with %q", said)
	}
}

// shows waits until the bot's metrics contain a line, or wrong returns an error.
func shows(ctx context.Context, bot, metric string, wrong func() error) error {
	var last []string
	for {
		if err := wrong(); err != nil {
			return fmt.Errorf("%s: %w", metric, err)
		}
		rq, err := http.NewRequestWithContext(ctx, http.MethodGet, bot+"/metrics", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(rq); err == nil {
			page, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil {
				last = strings.Split(string(page), "\n")
			}
			if slices.Contains(last, metric) {
				return nil
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			last = slices.DeleteFunc(last, func(line string) bool { return !strings.HasPrefix(line, "kernelgate_") })
			return fmt.Errorf("the bot never said %s: %w\n%s", metric, ctx.Err(), strings.Join(last, "\n"))
		}
	}
}
