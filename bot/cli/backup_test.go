package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
)

// A session with backup, verify and restore, with everything that they refuse. The bot is stopped; package serve tests a
// running one.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	data, empty := filepath.Join(dir, "data"), filepath.Join(dir, "empty")
	j, err := journal.Open(t.Context(), journal.Options{Dir: filepath.Join(data, "journal")})
	if err != nil {
		t.Fatal(err)
	}
	judgedChange(t, j, 1, true, time.Now())
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "backups")
	for _, name := range []string{folder, empty} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, old := range []string{"kernelgate-20250101T000000Z.backup", "kernelgate-20250102T000000Z.backup", "kernelgate-mine.backup"} {
		if err := os.WriteFile(filepath.Join(folder, old), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	killed := filepath.Join(folder, "kernelgate-20250103T000000Z.backup.partial")
	if err := os.WriteFile(killed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(killed, time.Time{}, time.Now().Add(-25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	try := func(args ...string) {
		t.Helper()
		var out bytes.Buffer
		status := Run(args, &out, &out)
		fmt.Fprintf(&all, "$ kernelgate %s\n%s[exit status %d]\n\n", strings.Join(args, " "), &out, status)
	}
	file := filepath.Join(dir, "today.backup")
	try("backup", "--data", data, file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", info, err)
	}
	try("backup", "--data", data, file)
	try("backup", "--data", data, "--keep", "2", folder)
	try("backup", "--data", data, "--keep", "2", filepath.Join(dir, "other.backup"))
	try("backup", "--data", empty, filepath.Join(dir, "other.backup"))
	try("backup", "--data", data, "--config", "x.yaml", file)
	try("verify", "--data", data)
	try("verify", file)
	try("verify", "--data", data, file)
	try("restore", "--data", data, file)
	try("restore", "--data", filepath.Join(dir, "new"), file)
	try("verify", "--data", filepath.Join(dir, "new"))
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	try("verify", file)
	try("restore", "--data", filepath.Join(dir, "other"), file)
	try("restore", "--data", filepath.Join(dir, "other"), filepath.Join(dir, "absent.backup"))
	block := filepath.Join(data, "journal/jetstream/$G/streams/EVENTS/msgs/1.blk")
	events, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(events, []byte(`"Faster"`))
	events[at+2] ^= 0xff
	if err := os.WriteFile(block, events, 0o600); err != nil {
		t.Fatal(err)
	}
	try("verify", "--data", data)
	try("backup", "--data", data, filepath.Join(dir, "damaged.backup"))
	if left, err := filepath.Glob(filepath.Join(dir, "*.partial")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	got := strings.ReplaceAll(all.String(), dir, "/tmp")
	got = regexp.MustCompile(`20[23]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`).ReplaceAllString(got, "2026-01-02T03:04:05Z")
	got = regexp.MustCompile(`kernelgate-202[6-9]\d{4}T\d{6}Z`).ReplaceAllString(got, "kernelgate-20260102T030405Z")
	got = regexp.MustCompile(`[\d.]+ [KM]iB`).ReplaceAllString(got, "N KiB")
	golden(t, "bot/cli/testdata/backup.txt", got)
}

// With a NATS server the commands need no bot: they ask the server.
func TestBackupOnNATS(t *testing.T) {
	dir := t.TempDir()
	config := func(urls string) string {
		// The secrets are in the environment of the bot, as in the package.
		text := fmt.Sprintf("data: %s\ngithub: {app_id: 7}\nnats: %s\n", t.TempDir(), urls)
		return put(t, []byte(text), t.TempDir(), "kernelgate.yaml")
	}
	old, other := natstest.New(t, []string{freePort(t), freePort(t)}), natstest.New(t, []string{freePort(t), freePort(t)})
	from, to := config(old.URLs), config(other.URLs)
	j, err := journal.Open(t.Context(), journal.Options{URL: old.URLs})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	judgedChange(t, j, 1, true, time.Now())
	var out bytes.Buffer
	file := filepath.Join(dir, "nats.backup")
	for _, args := range [][]string{{"backup", "--config", from, file}, {"restore", "--config", to, file}, {"verify", "--config", to}} {
		if status := Run(args, &out, &out); status != 0 {
			t.Fatalf("%v: exit status %d\n%s", args, status, &out)
		}
	}
	if !strings.Contains(out.String(), "Intact: 4 events and 3 blobs.") {
		t.Error(out.String())
	}
}
