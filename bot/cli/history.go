package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/cli/terminal"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/results"
	"github.com/kernelgate/kernelgate/runners/work/check"
	"github.com/kernelgate/kernelgate/runners/work/tune"
)

func historyCommand(stdout io.Writer) *cobra.Command {
	policyName, format, searches := "", "", ""
	cmd := &cobra.Command{
		Use:   "history KERNEL",
		Short: "Print the performance history of a kernel from its stored evidence",
		Long: "Judges every KERNEL/evidence/*.json by the policy, or without such files the kernel's runs in the folder\n" +
			"results. It prints the gain of each variant over the previous one, and the variants that did not work, with\n" +
			"their lessons from KERNEL/kernel.yaml. A terminal gets aligned columns; a file or a pipe gets Markdown.\n\n" +
			"A second table lists candidates of kernelgate tune that failed, by machine code and device. They come from\n" +
			"the folder --searches. On a terminal, the default is the folder results in the repository.",
		Example: "  kernelgate history kernels/sdpa_fp8 --policy h200\n  kernelgate history kernels/sdpa_fp8 --policy h200 > kernels/sdpa_fp8/HISTORY.md\n  kernelgate history kernels/sdpa_fp8 --searches results   # candidates of tune that failed",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, ok := terminal.Size(stdout); format == "" && !ok {
				format = "markdown"
			}
			if format != "" && format != "terminal" && format != "markdown" {
				return usage.Errorf("--format: %q is not one of terminal, markdown", format)
			}
			failed, err := failedCandidates(cmd.Context(), args[0], searches, format != "markdown")
			if err != nil {
				return err
			}
			text := ""
			if policyName != "" || searches == "" { // failed candidates alone need no policy
				if format == "markdown" {
					text, err = check.History(args[0], policyName)
				} else {
					text, err = check.TerminalHistory(args[0], policyName, terminalOptions(stdout))
				}
			}
			if text != "" && len(failed) > 0 {
				text += "\n"
			}
			if format == "markdown" {
				text += tune.FailuresMarkdown(failed)
			} else {
				text += tune.FailuresText(failed, terminalOptions(stdout).Width)
			}
			fmt.Fprint(stdout, text)
			return err
		},
	}
	policyFlag(cmd, &policyName, " (required for evidence)")
	cmd.Flags().StringVar(&format, "format", "", "terminal or markdown (default: terminal on a terminal, markdown elsewhere)")
	cmd.Flags().StringVar(&searches, "searches", "", "folder of results with the failed candidates of searches (default on a terminal: results in the repository)")
	complete(cmd, "format", func() []string { return []string{"terminal", "markdown"} })
	return cmd
}

// failedCandidates reads the failed candidates of the kernel's searches from the folder searches. If that
// is empty and here is true, it reads them from the folder results in the repository. If here is false, it
// returns none.
func failedCandidates(ctx context.Context, kernel, searches string, here bool) ([]tune.Failure, error) {
	named := searches != ""
	if !named {
		if !here {
			return nil, nil
		}
		repo, err := checkout.Open(ctx, kernel)
		if err != nil {
			return nil, nil // evidence has a history outside of a repository, too
		}
		searches = filepath.Join(repo.Dir(), "results")
	}
	all, err := tune.ReadFailures(filepath.Join(searches, tune.FailuresFile))
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage.Errorf("--searches: %s has no %s: in searches with this folder of results, no candidate ran and failed", searches, tune.FailuresFile)
	}
	if err != nil {
		return nil, err
	}
	return tune.OfKernel(all, kernelName(kernel)), nil
}

// kernelName returns the name in the manifest of a kernel's folder. Without a manifest, it returns the name
// of the folder.
func kernelName(folder string) string {
	text, err := results.ReadAtMost(filepath.Join(folder, manifest.FileName), strict.MaxBytes)
	if err == nil {
		if m, err := manifest.Parse(manifest.FileName, text); err == nil {
			return m.Name
		}
	}
	return filepath.Base(folder)
}
