package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// packaged copies the package with this file ending, which .ci/operate-release has built, into the files of
// a box.
func packaged(t *testing.T, ending, files string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("KERNELGATE_PACKAGES"), "kernelgate_*_linux_amd64."+ending))
	if err != nil || len(found) != 1 {
		t.Fatalf("packages: %v, %v", found, err)
	}
	put(t, slurp(t, found[0]), files, "root", "kernelgate."+ending)
}

// TestOperatePackage installs the Debian package under a real systemd. Its units judge pull requests. Then
// the test sends SIGHUP, runs gc as root, upgrades the package while the units run, and removes it. If rpm is installed, the test also
// installs the RPM package.
func TestOperatePackage(t *testing.T) {
	if os.Getenv("KERNELGATE_PACKAGES") == "" {
		t.Skip("make operate-test runs it, as root, and builds the packages")
	}
	ctx := operating(t)
	w, files, port := newHub(t), t.TempDir(), freePort(t)
	packaged(t, "deb", files)
	packaged(t, "rpm", files)
	etc := filepath.Join(files, "root/etc")
	put(t, w.app.PrivateKeyPEM(), etc, "private-key.pem")
	put(t, []byte(hubSecret), etc, "webhook-secret")
	put(t, []byte("a token for the runner, long enough"), etc, "runner.token")
	put(t, fmt.Appendf(nil, "listen: 127.0.0.1:%s\ngithub: {app_id: %d, api_url: '%s', git_url: '%s'}\nrunners: [{name: box, labels: [cpu], token_file: /run/credentials/kernelgate.service/box.token}]\n"+hubPages,
		port, w.app.ID(), w.hub.URL(), w.hub.URL()), etc, "kernelgate.yaml")
	put(t, []byte("[Service]\nLoadCredential=box.token:/etc/kernelgate/runner.token\n"), files, "etc/systemd/system/kernelgate.service.d", "runner.conf")

	b := newBox(t, files)
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := b.run("journalctl --no-pager -o cat -u kernelgate -u kernelgate-runner | tail -n 60")
			t.Log(log)
		}
	})
	says := func(command, want string) {
		t.Helper()
		if got, _ := b.run(command); strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	install := b.must("dpkg --install /root/kernelgate.deb")
	for _, next := range []string{"no service is enabled", "kernelgate setup --url", "systemctl enable --now kernelgate\n", "runner.token)\n", "systemctl enable --now kernelgate-runner"} {
		if !strings.Contains(install, next) {
			t.Errorf("the package does not name the next step %q:\n%s", next, install)
		}
	}
	version := strings.TrimSpace(b.must("/usr/bin/kernelgate --version"))
	says("systemctl is-enabled kernelgate kernelgate-runner", "disabled\ndisabled")
	says("systemctl is-active kernelgate kernelgate-runner", "inactive\ninactive")
	says("dpkg-query --show --showformat='${Conffiles}' kernelgate | cut -d' ' -f2", "/etc/kernelgate/runner.env")
	says("stat --format='%a %U' /etc/kernelgate", "711 root")
	says("getent passwd kernelgate-runner | cut -d: -f6,7", "/var/lib/kernelgate-runner:/usr/sbin/nologin")

	b.must("install -m 600 /root/etc/private-key.pem /root/etc/webhook-secret /root/etc/runner.token /etc/kernelgate && install -m 644 /root/etc/kernelgate.yaml /etc/kernelgate")
	b.must(fmt.Sprintf("printf 'KERNELGATE_SERVER=http://127.0.0.1:%s\\nKERNELGATE_NAME=box\\n' >> /etc/kernelgate/runner.env", port))
	b.must("systemctl enable --now kernelgate kernelgate-runner")
	ready := func() {
		t.Helper()
		for _, metric := range []string{"kernelgate_ready 1", `kernelgate_runners{label="cpu",state="idle"} 1`} {
			if err := shows(ctx, "http://127.0.0.1:"+port, metric, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	ready()
	w.app.SetHook("http://127.0.0.1:"+port+"/webhook", hubSecret)
	bot := "http://127.0.0.1:" + port
	proves(ctx, t, w, bot, "installed")

	before := b.must("systemctl show --property=MainPID --value kernelgate kernelgate-runner")
	// The habits of operators: a SIGHUP, and gc as root.
	b.must("kill -HUP " + strings.Join(strings.Fields(before), " "))
	for range 100 {
		if _, status := b.run("journalctl --quiet --no-pager -o cat -u kernelgate | grep -q SIGHUP"); status == 0 {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	says("journalctl --quiet --no-pager -o cat -u kernelgate | grep -c SIGHUP", "1")
	says("systemctl show --property=MainPID --value kernelgate kernelgate-runner", strings.TrimSpace(before))
	b.must("systemctl stop kernelgate")
	for _, gc := range []string{"gc --dry-run", "gc"} {
		b.must("kernelgate " + gc + " --data /var/lib/kernelgate")
		says("find /var/lib/private/kernelgate -user root", "")
	}
	b.must("systemctl start kernelgate")
	ready()
	result(t, "a SIGHUP ends neither unit, and gc as root leaves every file to the bot, which starts again")

	const config = " --config /etc/kernelgate/kernelgate.yaml "
	b.must("mkdir -m 700 /root/backups && kernelgate backup" + config + "--keep 2 /root/backups && kernelgate verify" + config)
	says("stat --format=%a /root/backups/*.backup", "600")
	b.must("systemctl stop kernelgate && mv /var/lib/kernelgate/journal /root/journal.old && kernelgate restore" + config + "/root/backups/*.backup")
	says("find /var/lib/private/kernelgate -user root", "")
	b.must("systemctl start kernelgate")
	ready()
	says("journalctl --quiet --no-pager -o cat -u kernelgate | grep -c 'every open change is read again'", "1")
	result(t, "root backs up the running unit, restores the file, and the bot reads every open change again")

	before = b.must("systemctl show --property=MainPID --value kernelgate kernelgate-runner")
	if again := b.must("dpkg --install /root/kernelgate.deb"); strings.Contains(again, "Next steps") || strings.Contains(again, "Configuration file") {
		t.Errorf("an upgrade prints\n%s", again)
	}
	if after := b.must("systemctl show --property=MainPID --value kernelgate kernelgate-runner"); after == before {
		t.Errorf("an upgrade does not restart the units: %q", after)
	}
	says("grep -c KERNELGATE_NAME=box /etc/kernelgate/runner.env", "1")
	ready()
	proves(ctx, t, w, bot, "upgraded")

	b.must("dpkg --remove kernelgate")
	says("systemctl is-active kernelgate kernelgate-runner", "inactive\ninactive")
	says("ls /usr/bin/kernelgate /usr/lib/systemd/system/kernelgate*.service /etc/systemd/system/multi-user.target.wants/* 2>/dev/null", "")
	says("ls /etc/kernelgate", "kernelgate.yaml\nprivate-key.pem\nrunner.env\nrunner.token\nwebhook-secret")
	purge := b.must("dpkg --purge kernelgate")
	for _, kept := range []string{"/etc/kernelgate stays", "/var/lib/private/kernelgate stays"} {
		if !strings.Contains(purge, kept) {
			t.Errorf("a purge does not say that %s:\n%s", kept, purge)
		}
	}
	says("ls /etc/kernelgate", "kernelgate.yaml\nprivate-key.pem\nrunner.token\nwebhook-secret")
	result(t, "%s as deb: installed with nothing enabled, upgraded while it runs, removed; before and after the upgrade a faster kernel passes and a slower one does not", version)

	if _, err := exec.LookPath("rpm"); err != nil {
		result(t, "rpm is not installed: its package was not tried")
		return
	}
	// Debian has everything that the RPM package depends on, but under different names: hence --nodeps.
	if said := b.must("rpm --install --nodeps /root/kernelgate.rpm"); !strings.Contains(said, "Next steps") {
		t.Errorf("rpm prints\n%s", said)
	}
	says("rpm --query --configfiles kernelgate", "/etc/kernelgate/runner.env")
	b.must("systemctl enable --now kernelgate kernelgate-runner")
	if err := shows(ctx, "http://127.0.0.1:"+port, "kernelgate_ready 1", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	b.must("rpm --erase kernelgate")
	says("systemctl is-active kernelgate kernelgate-runner", "inactive\ninactive")
	says("ls /usr/bin/kernelgate 2>/dev/null", "")
	result(t, "the same version as rpm: installed, started, removed")
}
