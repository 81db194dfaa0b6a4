package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
)

// runners lists who may take which jobs, and prepares the local runner if there is
// to be one.
func (s *Server) runners(ctx context.Context) (map[string]fleet.Credential, *child, error) {
	tokens := map[string]fleet.Credential{}
	for _, r := range s.opt.Config.Runners {
		token := s.opt.Secrets.Runners[r.Name]
		if token == "" {
			return nil, nil, fmt.Errorf("the runner %s has no token: it could never connect", r.Name)
		}
		tokens[r.Name] = fleet.NewCredential(token, r.Labels...)
	}
	local := s.opt.Runner
	if !local.Local {
		return tokens, nil, nil
	}
	token := newToken()
	c, err := s.newChild(local.Labels, token)
	if err == nil && len(c.labels) == 0 {
		c.labels, err = s.findLabels(ctx, c)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("preparing the local runner: %w", err)
	}
	tokens[local.Name] = fleet.NewCredential(token, c.labels...)
	return tokens, c, nil
}

// findLabels is the kinds of jobs that the local runner can take.
func (s *Server) findLabels(ctx context.Context, c *child) ([]string, error) {
	if !c.builds {
		return s.opt.Labels(), nil
	}
	env := map[string]string{}
	for _, one := range c.environment() {
		name, value, _ := strings.Cut(one, "=")
		env[name] = value
	}
	return measure.Config{Toolchains: c.toolchains, Getenv: func(name string) string { return env[name] }}.BuildLabels(ctx)
}

// newChild makes the local runner's folder. Its token is new with every start.
func (s *Server) newChild(labels []string, token string) (*child, error) {
	dir := filepath.Join(s.opt.Data, "runner")
	c := &child{
		program: s.opt.Program, dir: dir, server: s.runnerURL(), name: s.opt.Runner.Name, labels: labels, gpus: s.opt.Runner.GPUs, includes: s.opt.Runner.Includes, toolchains: s.opt.Runner.Toolchains, builds: s.opt.Runner.Builds,
		level: s.opt.Config.Log.Level, format: s.opt.Config.Log.Format,
		stderr: s.opt.Stderr, log: s.log, getenv: os.Getenv, more: s.opt.RunnerEnv,
	}
	if len(c.program) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding this program: %w", err)
		}
		c.program = []string{self}
	}
	own, err := s.runnerUser()
	if err != nil {
		return nil, err
	}
	c.as = own
	if own == nil && os.Geteuid() == 0 {
		s.log.Warn("the local runner runs as root and can read the secrets of the bot: set runner.user")
	}
	if err := makeRoom(dir, own); err != nil {
		return nil, err
	}
	for _, d := range []string{c.home(), c.state()} {
		if err := errors.Join(os.MkdirAll(d, 0o755), chown(d, own)); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(c.tokenFile()); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if err := os.WriteFile(c.tokenFile(), []byte(token), 0o600); err != nil {
		return nil, err
	}
	return c, chown(c.tokenFile(), own)
}

// makeRoom makes the folder that the runner may enter and must not write: what
// the bot puts there as root could otherwise be led elsewhere by a link.
func makeRoom(dir string, own *syscall.Credential) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if own == nil {
		return os.Chmod(dir, 0o700)
	}
	return errors.Join(os.Lchown(dir, os.Geteuid(), int(own.Gid)), os.Chmod(dir, 0o750))
}

// runnerUser is whom the local runner runs as; nil is as the bot.
func (s *Server) runnerUser() (*syscall.Credential, error) {
	name := s.opt.Runner.User
	if name == "" {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("runner.user: %w (make it with: useradd --system --shell /usr/sbin/nologin %s)", err, name)
	}
	if u.Uid == strconv.Itoa(os.Geteuid()) {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("runner.user: only root can start a runner as %s (remove it, and install kernelgate-runner.service, which runs as a separate user)", name)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("runner.user: the groups of %s: %w", name, err)
	}
	ids := make([]uint32, 0, len(groups)+2)
	for _, text := range append([]string{u.Uid, u.Gid}, groups...) {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("runner.user: %q of %s is not a number: %w", text, name, err)
		}
		ids = append(ids, uint32(id))
	}
	return &syscall.Credential{Uid: ids[0], Gid: ids[1], Groups: ids[2:]}, nil
}

func chown(path string, to *syscall.Credential) error {
	if to == nil {
		return nil
	}
	return os.Lchown(path, int(to.Uid), int(to.Gid))
}

// ownSocket lets the local runner in where it is another user.
func (s *Server) ownSocket() error {
	if !s.opt.Runner.Local {
		return nil
	}
	as, err := s.runnerUser()
	if err != nil {
		return err
	}
	return chown(s.opt.socket(), as)
}

// here tells whether a runner that was heard of then still counts as connected.
func (s *Server) here(seen time.Time) bool {
	return !seen.IsZero() && s.opt.Now().Sub(seen) < fleet.Away
}

// connected is the runners that were heard of lately and take jobs.
func (s *Server) connected() []present.RunnerInfo {
	var list []present.RunnerInfo
	for _, r := range s.Runners.Runners() {
		if s.here(r.LastSeen) && (r.Availability.Takes() || r.Job != "") {
			list = append(list, present.RunnerInfo{Name: r.Name, Labels: r.Labels, Busy: r.Job != ""})
		}
	}
	return list
}
