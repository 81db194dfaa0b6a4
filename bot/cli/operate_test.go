package cli

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
)

// operating guards the tests of make operate-test, which play the work of an operator with real
// processes, disks and file systems. They need root and take minutes, so they run only if
// KERNELGATE_OPERATE is set. The script prints the lines that begin with "result:".

func operating(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv("KERNELGATE_OPERATE") == "" {
		t.Skip("make operate-test runs it, as root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func result(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("result: "+format, args...)
}

// A process is the bot with its own runner, started as an operator would.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	said *bytes.Buffer
}

// serveBot starts the bot with a data folder. more is appended to its configuration.
func serveBot(t *testing.T, w *hub, data, more string, flags ...string) *process {
	t.Helper()
	return serveBotAt(t, freePort(t), w, data, more, flags...)
}

func serveBotAt(t *testing.T, port string, w *hub, data, more string, flags ...string) *process {
	t.Helper()
	return serveProgram(t, "kernelgate", port, w, data, more, flags...)
}

func serveProgram(t *testing.T, program, port string, w *hub, data, more string, flags ...string) *process {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf("data: %s\nlisten: 127.0.0.1:%s\nrunner: {labels: [cpu]}\ngithub: {app_id: %d, api_url: '%s', git_url: '%s', private_key_file: %s, webhook_secret_file: %s}\n"+hubPages+"%s",
		data, port, w.app.ID(), w.hub.URL(), w.hub.URL(), put(t, w.app.PrivateKeyPEM(), dir, "key.pem"), put(t, []byte(hubSecret), dir, "secret"), more)
	p := &process{t: t, url: "http://127.0.0.1:" + port, said: &bytes.Buffer{}}
	p.cmd = exec.Command(program, append([]string{"serve", "--config", put(t, []byte(config), dir, "kernelgate.yaml")}, flags...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	w.app.SetHook(p.url+"/webhook", hubSecret)
	return p
}

func (p *process) ready(ctx context.Context) {
	p.t.Helper()
	if err := shows(ctx, p.url, "kernelgate_ready 1", func() error { return p.cmd.Process.Signal(syscall.Signal(0)) }); err != nil {
		p.kill()
		p.t.Fatalf("%v\n%s", err, p.said)
	}
}

// stop ends the process as an operator would.
func (p *process) stop() {
	p.t.Helper()
	if err := errors.Join(p.cmd.Process.Signal(syscall.SIGTERM), p.cmd.Wait()); err != nil {
		p.t.Errorf("%v\n%s", err, p.said)
	}
}

// kill ends the process and its runner at once.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have already ended
		_ = p.cmd.Wait()                                      // it was killed
	}
}

// TestOperateFullServer checks that a pull request is judged although the disk of one of three NATS
// servers is full, for each of them.
func TestOperateFullServer(t *testing.T) {
	ctx := operating(t)
	w, dir := newHub(t), t.TempDir()
	var ports []string
	for range 6 {
		ports = append(ports, freePort(t))
	}
	for i := range 3 {
		mount(t, "tmpfs", filepath.Join(dir, fmt.Sprint(i)), "tmpfs", "size=64m")
	}
	nats := natstest.NewIn(t, ports, dir)
	p := serveBot(t, w, t.TempDir(), fmt.Sprintf("nats: [%s]\nnats_replicas: 3\n", nats.URLs))
	p.ready(ctx)
	verdicts(ctx, t, w, "before", 1)
	for full := range 3 {
		ballast := filepath.Join(dir, fmt.Sprint(full), "ballast")
		fillDisk(t, ballast)
		begun := time.Now()
		verdicts(ctx, t, w, fmt.Sprint("full-", full), 3)
		took := time.Since(begun)
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		nats.Kill(full)
		nats.Start(full) // a server without space turns JetStream off until it is restarted
		current := `kernelgate_journal_copies{state="current",stream="EVENTS"} 3`
		if err := shows(ctx, p.url, current, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		result(t, "NATS server %d of 3 has no disk space: 3 of 3 pull requests pass, in %.0f s; with space again and restarted, it catches up", full+1, took.Seconds())
	}
	p.stop()
}

// fillDisk writes until there is no space left.
func fillDisk(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 1; size /= 16 {
		for piece := make([]byte, size); err == nil; {
			_, err = f.Write(piece)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
}

func mount(t *testing.T, from, at, kind, options string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(at, 0o755), syscall.Mount(from, at, kind, 0, options)); err != nil {
		t.Fatalf("mount %s: %v", at, err)
	}
	// The test may have already unmounted it.
	t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
}

// TestOperateTruncatedJournal checks that a journal that was reset to an earlier state is refused
// with a status after which systemd does not restart the bot, and accepted with a flag.
func TestOperateTruncatedJournal(t *testing.T) {
	ctx := operating(t)
	w, data, earlier := newHub(t), t.TempDir(), t.TempDir()
	run := func(branch string, flags ...string) {
		t.Helper()
		p := serveBot(t, w, data, "", flags...)
		p.ready(ctx)
		verdicts(ctx, t, w, branch, 1)
		p.stop()
	}
	run("first")
	if err := os.CopyFS(earlier, os.DirFS(filepath.Join(data, "journal"))); err != nil {
		t.Fatal(err)
	}
	run("second")
	if err := errors.Join(os.RemoveAll(filepath.Join(data, "journal")), os.CopyFS(filepath.Join(data, "journal"), os.DirFS(earlier))); err != nil {
		t.Fatal(err)
	}
	p := serveBot(t, w, data, "")
	_ = p.cmd.Wait() // the exit status is checked below
	if status := p.cmd.ProcessState.ExitCode(); status != exitInput || !strings.Contains(p.said.String(), "--accept-loss") {
		t.Fatalf("status %d:\n%s", status, p.said)
	}
	why := regexp.MustCompile(`the journal lacks[^(]*`).FindString(p.said.String())
	result(t, "a journal with lost events: the bot ends with status 2: %s", strings.TrimSpace(why))
	run("third", "--accept-loss")
	kept, err := filepath.Glob(filepath.Join(data, "ledger.db.lost-*Z"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	result(t, "with --accept-loss it starts, judges the next pull request, and keeps the old ledger as ledger.db.lost-<time>")
}

// TestOperatePowerCut checks that webhooks that were answered with 202 survive a power cut: the
// file system is shut down without a flush, and everything is killed.
func TestOperatePowerCut(t *testing.T) {
	ctx := operating(t)
	w, dir := newHub(t), t.TempDir()
	image, at := filepath.Join(dir, "disk"), filepath.Join(dir, "data")
	command(t, "truncate", "--size=512M", image)
	command(t, "mkfs.ext4", "-q", "-F", image)
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "mount", "-o", "loop", image, at)
	t.Cleanup(func() { _ = exec.Command("umount", "-l", at).Run() })
	data := filepath.Join(at, "kernelgate")
	p := serveBot(t, w, data, "")
	p.ready(ctx)
	verdicts(ctx, t, w, "before", 1)

	var mu sync.Mutex
	var accepted []string
	var senders sync.WaitGroup
	cut := make(chan struct{})
	for range 8 {
		senders.Go(func() {
			for {
				id := rand.Text()
				if status := sendWebhook(p.url, id); status != http.StatusAccepted {
					return // the power is off
				}
				mu.Lock()
				accepted = append(accepted, id)
				enough := len(accepted) == 400
				mu.Unlock()
				if enough {
					close(cut)
				}
			}
		})
	}
	select {
	case <-cut:
	case <-ctx.Done():
		t.Fatal("the bot takes no webhooks")
	}
	loose := filepath.Join(at, "unsynced")
	if err := os.WriteFile(loose, []byte("what nobody has synced"), 0o600); err != nil {
		t.Fatal(err)
	}
	powerOff(t, at)
	p.kill()
	senders.Wait()
	command(t, "umount", at)
	command(t, "mount", "-o", "loop", image, at)
	if info, err := os.Stat(loose); err == nil && info.Size() > 0 {
		t.Error("the file system has kept what nobody synced: this was no power cut")
	}

	j, err := journal.Open(ctx, journal.Options{Dir: filepath.Join(data, "journal")})
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, id := range accepted {
		isNew, err := j.Accept(ctx, webhook.Delivery{ID: id, Event: "check_suite", Body: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		if isNew {
			lost++
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if lost > 0 {
		t.Errorf("%d of %d accepted webhooks are lost", lost, len(accepted))
	}
	p = serveBot(t, w, data, "")
	p.ready(ctx)
	verdicts(ctx, t, w, "after", 1)
	p.stop()
	result(t, "power cut (ext4 on a loop device, shut down without a write, everything killed): %d of %d webhooks that were answered with 202 are in the journal, and the next pull request passes", len(accepted)-lost, len(accepted))
}

func command(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// powerOff makes a file system lose what it has not written: EXT4_IOC_SHUTDOWN without a flush of
// its log.
func powerOff(t *testing.T, at string) {
	t.Helper()
	dir, err := os.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	const shutdown = 0x8004587d // _IOR('X', 125, __u32)
	flags := uint32(2)          // NOLOGFLUSH
	if _, _, no := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), shutdown, uintptr(unsafe.Pointer(&flags))); no != 0 {
		t.Fatalf("shutting the file system down: %v", no)
	}
}

// sendWebhook sends a meaningless webhook and returns the status, or 0 if there was no answer.
func sendWebhook(bot, id string) int { return sendBody(bot, id, strings.Repeat("webhook ", 500)) }

// sendLargeWebhook is sendWebhook with half a megabyte.
func sendLargeWebhook(bot, id string) int {
	return sendBody(bot, id, strings.Repeat("webhook ", 1<<16))
}

func sendBody(bot, id, text string) int {
	body := fmt.Sprintf(`{"zen": %q}`, text)
	sum := hmac.New(sha256.New, []byte(hubSecret))
	sum.Write([]byte(body))
	rq, err := http.NewRequest(http.MethodPost, bot+"/webhook", strings.NewReader(body))
	if err != nil {
		return 0
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": "check_suite", "X-GitHub-Delivery": id, "X-Hub-Signature-256": fmt.Sprintf("sha256=%x", sum.Sum(nil)),
	} {
		rq.Header.Set(key, value)
	}
	resp, err := http.DefaultClient.Do(rq)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}
