package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// journalFlags say which journal a command is about.
type journalFlags struct{ config, data string }

func (j *journalFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&j.config, "config", "", "configuration file of the bot (default: $"+serve.EnvConfig+", or "+serve.DefaultFile+" if it exists)")
	f.StringVar(&j.data, "data", "", "data folder of a bot with an embedded journal, instead of --config")
}

// load returns the configuration. Its account and its secrets may be missing: only the place of the journal matters.
func (j *journalFlags) load() (serve.Config, error) {
	if j.config != "" && j.data != "" {
		return serve.Config{}, usage.Errorf("--config and --data name two journals: give one of them")
	}
	if j.data != "" {
		return serve.Config{Data: j.data}, nil
	}
	return serve.Load(serve.Sources{File: configFile(j.config), Getenv: os.Getenv, JournalOnly: true})
}

const (
	backupSuffix  = ".backup"
	backupPattern = "kernelgate-20060102T150405Z" + backupSuffix
)

func backupCommand(stdout, stderr io.Writer) *cobra.Command {
	var from journalFlags
	var keep int
	cmd := &cobra.Command{
		Use:   "backup FILE|FOLDER",
		Short: "Back up the journal of a bot, which may run meanwhile",
		Long: "Writes a copy of the journal to a new file that only you may read (mode 0600), and reads it again to compare\n" +
			"its hashes. In a folder the file is named by the time, and --keep deletes older ones. The bot may run. The\n" +
			"journal has source code of private repositories: keep the file as secret as the data folder.\n\n" +
			"Secrets and the configuration are not part of the journal: back them up separately. Restore with:\n" +
			"kernelgate restore.\n\n" +
			"Exit status: 0 done, 1 the journal is damaged and was not backed up, 2 bad input, 3 any other failure.",
		Example: "  kernelgate backup --config /etc/kernelgate/kernelgate.yaml /var/backups/kernelgate --keep 14\n" +
			"  kernelgate backup --data /var/lib/kernelgate today.backup",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := from.load()
			if err != nil {
				return err
			}
			file, folder, err := backupFile(args[0], time.Now())
			if err != nil {
				return err
			}
			if keep < 0 || keep > 0 && folder == "" {
				return usage.Errorf("--keep: give a number above 0, and a folder for the backups")
			}
			m, err := backUp(cmd.Context(), config, file, stderr)
			if errors.Is(err, journal.ErrDamaged) {
				fmt.Fprintf(stderr, "kernelgate: %v\nNothing was backed up. See which events are damaged with kernelgate verify; docs/operate/backup.md says what to do.\n", err)
				return exit(exitDefer)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(stdout, "%s: %d events, %s, with all hashes verified.\n", file, m.Last, number.Bytes(float64(m.Bytes())))
			return deleteOld(folder, keep, stdout)
		},
	}
	from.add(cmd)
	cmd.Flags().IntVar(&keep, "keep", 0, "keep this number of backups in the folder, and delete older ones; 0 keeps all")
	return cmd
}

// backupFile returns the file to write and, if a folder was given, that folder.
func backupFile(arg string, now time.Time) (file, folder string, err error) {
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return arg, "", nil
	case err != nil:
		return "", "", usage.Errorf("%w", err)
	case info.IsDir():
		return filepath.Join(arg, now.UTC().Format(backupPattern)), arg, nil
	}
	return "", "", usage.Errorf("%s exists: give a new file, or a folder", arg)
}

// backUp writes a backup to a new file, and reads it again. It leaves no file behind if it fails.
func backUp(ctx context.Context, config serve.Config, file string, stderr io.Writer) (m journal.Manifest, err error) {
	partial := file + ".partial"
	out, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return m, usage.Errorf("%s exists: a backup is under way, or one was killed (then delete the file)", partial)
	}
	if err != nil {
		return m, usage.Errorf("%w", err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(err, os.Remove(partial))
		}
	}()
	if err := copyJournal(ctx, config, out, stderr); err != nil {
		return m, err
	}
	if err := out.Sync(); err != nil {
		return m, fmt.Errorf("writing the backup: %w", err)
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return m, err
	}
	if m, err = journal.CheckBackup(bufio.NewReader(out)); err != nil {
		return m, fmt.Errorf("reading the backup again: %w", err)
	}
	if err := os.Rename(partial, file); err != nil {
		return m, fmt.Errorf("writing the backup: %w", err)
	}
	return m, nil
}

// copyJournal has the running bot write the backup, or opens the journal.
func copyJournal(ctx context.Context, config serve.Config, out io.Writer, stderr io.Writer) error {
	if len(config.NATS) == 0 {
		if err := hasJournal(config.Data); err != nil {
			return err
		}
		if err := serve.AskForBackup(ctx, config.Data, out); !errors.Is(err, serve.ErrNoBot) {
			return err
		}
	}
	return withJournal(ctx, config, stderr, func(j *journal.Journal) error {
		_, err := j.Backup(ctx, out)
		return err
	})
}

// hasJournal refuses a data folder without a journal.
func hasJournal(data string) error {
	_, err := os.Stat(filepath.Join(data, "journal"))
	if errors.Is(err, fs.ErrPermission) {
		return usage.Errorf("%w: run this as root, or as the user of the bot", err)
	}
	if err != nil {
		return usage.Errorf("%s is not the data folder of a bot with an embedded journal: %w", data, err)
	}
	return nil
}

// withJournal opens a journal for reading.
func withJournal(ctx context.Context, config serve.Config, stderr io.Writer, use func(*journal.Journal) error) error {
	j, err := serve.OpenJournal(ctx, config, version(), true, newLog(stderr, "warn", "text"))
	if err != nil {
		return err
	}
	return errors.Join(use(j), j.Close())
}

// deleteOld deletes all but the newest backups of a folder, and what killed backups left there.
func deleteOld(folder string, keep int, out io.Writer) error {
	if keep == 0 {
		return nil
	}
	list := func(suffix string) ([]string, error) {
		all, err := filepath.Glob(filepath.Join(folder, "kernelgate-*"+suffix))
		slices.Sort(all)
		return slices.DeleteFunc(all, func(file string) bool {
			_, err := time.Parse(backupPattern, filepath.Base(strings.TrimSuffix(file, ".partial")))
			return err != nil
		}), err
	}
	all, err := list(backupSuffix)
	partial, errPartial := list(backupSuffix + ".partial")
	if err := errors.Join(err, errPartial); err != nil {
		return err
	}
	partial = slices.DeleteFunc(partial, func(file string) bool {
		info, err := os.Stat(file)
		return err != nil || time.Since(info.ModTime()) < 24*time.Hour // it may be under way
	})
	for _, file := range append(partial, all[:max(0, len(all)-keep)]...) {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("deleting an old backup: %w", err)
		}
		fmt.Fprintf(out, "Deleted %s.\n", file)
	}
	return nil
}

func verifyCommand(stdout, stderr io.Writer) *cobra.Command {
	var of journalFlags
	cmd := &cobra.Command{
		Use:   "verify [BACKUP]",
		Short: "Verify the journal of a bot, or a backup",
		Long: "Reads every event and every blob and compares them with their hashes. The bot may run. Of a backup it also\n" +
			"compares the hashes of the file, and restores it to a temporary folder in $TMPDIR.\n\n" +
			"Exit status: 0 intact, 1 damaged, 2 bad input, 3 any other failure.",
		Example: "  kernelgate verify --config /etc/kernelgate/kernelgate.yaml\n" +
			"  kernelgate verify /var/backups/kernelgate/kernelgate-20260101T000000Z.backup",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var r journal.Report
			var err error
			if len(args) == 1 {
				if of != (journalFlags{}) {
					return usage.Errorf("give a backup, or --config or --data, and not both")
				}
				r, err = verifyBackup(cmd.Context(), args[0], stderr)
			} else {
				r, err = verifyJournal(cmd.Context(), of, stderr)
			}
			if err == nil {
				err = r.Err()
			}
			if errors.Is(err, journal.ErrDamaged) || errors.Is(err, journal.ErrBackup) {
				fmt.Fprintf(stdout, "Damaged: %v.\n", err)
				return exit(exitDefer)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(stdout, "Intact: %d events and %d blobs.\n", r.Events, r.Blobs)
			return err
		},
	}
	of.add(cmd)
	return cmd
}

func verifyJournal(ctx context.Context, of journalFlags, stderr io.Writer) (r journal.Report, err error) {
	config, err := of.load()
	if err != nil {
		return r, err
	}
	if len(config.NATS) == 0 {
		if err := hasJournal(config.Data); err != nil {
			return r, err
		}
		if r, err = serve.AskToVerify(ctx, config.Data); !errors.Is(err, serve.ErrNoBot) {
			return r, err
		}
	}
	return verifyStopped(ctx, config, stderr)
}

// verifyStopped verifies a journal without asking a bot.
func verifyStopped(ctx context.Context, config serve.Config, stderr io.Writer) (r journal.Report, err error) {
	err = withJournal(ctx, config, stderr, func(j *journal.Journal) error {
		r, err = serve.VerifyAll(ctx, j)
		return err
	})
	return r, err
}

// verifyBackup restores a backup to a temporary folder.
func verifyBackup(ctx context.Context, file string, stderr io.Writer) (r journal.Report, err error) {
	in, err := os.Open(file)
	if err != nil {
		return r, usage.Errorf("%w", err)
	}
	defer in.Close()
	dir, err := os.MkdirTemp("", "kernelgate-verify-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	config := serve.Config{Data: dir}
	log := newLog(stderr, "error", "text")
	if _, err := serve.RestoreJournal(ctx, config, version(), in, log); err != nil {
		return r, err
	}
	return verifyStopped(ctx, config, stderr)
}

func restoreCommand(stdout, stderr io.Writer) *cobra.Command {
	var to journalFlags
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Restore the journal of a bot from a backup",
		Long: "Makes the journal of a backup in the data folder or on the NATS server of the configuration, and verifies it.\n" +
			"There must be none: move an old one away first. Stop the bots before. If root restores, the files belong to\n" +
			"the owner of the data folder. If it fails, it leaves nothing behind.\n\n" +
			"After the start the bot reads every open pull request again and publishes all checks and comments. What\n" +
			"happened after the backup is measured again; overrides and approvals since then must be given again.\n\n" +
			"Exit status: 0 done, 2 bad input (not a whole backup, or there is a journal), 3 any other failure.",
		Example: "  systemctl stop kernelgate && mv /var/lib/kernelgate/journal /var/lib/kernelgate/journal.old\n" +
			"  kernelgate restore --config /etc/kernelgate/kernelgate.yaml /var/backups/kernelgate/kernelgate-20260101T000000Z.backup\n" +
			"  systemctl start kernelgate",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := to.load()
			if err != nil {
				return err
			}
			in, err := os.Open(args[0]) // before this process becomes a different user
			if err != nil {
				return usage.Errorf("%w", err)
			}
			defer in.Close()
			if len(config.NATS) == 0 {
				if err := os.MkdirAll(config.Data, 0o700); err != nil {
					return usage.Errorf("%w", err)
				}
				if config.Data, err = becomeOwner(config.Data, config.Data); err != nil {
					return err
				}
			}
			m, err := serve.RestoreJournal(cmd.Context(), config, version(), in, newLog(stderr, "error", "text"))
			if errors.Is(err, journal.ErrNotEmpty) {
				return usage.Errorf("%w: nothing was changed. Stop the bots, move the old journal away (a data folder: mv journal journal.old; a NATS server: delete its streams), and restore again", err)
			}
			if errors.Is(err, journal.ErrBackup) {
				return usage.Errorf("%s: %w: nothing was changed", args[0], err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(stdout, "Restored %d events of %s. Start the bot: it reads every open pull request again.\n", m.Last, m.At.Format(time.RFC3339))
			return err
		},
	}
	to.add(cmd)
	return cmd
}
