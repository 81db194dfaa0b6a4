package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

func openCommand(stdout, stderr io.Writer) *cobra.Command {
	policyName, listen := "", "127.0.0.1:0"
	cmd := &cobra.Command{
		Use:   "open [RESULTS]",
		Short: "Show a folder of results as web pages on this host",
		Long: "Serves the pages of the bot (runs, kernels, comparisons) on a loopback address, from the evidence and\n" +
			"the verdicts in a folder (default: results). With --policy, it judges all evidence again by that\n" +
			"policy. It reads the folder again for every request, and stops at Ctrl-C.\n\n" +
			"Exit status: 0 stopped by a signal, 2 no results, 3 any other failure.",
		Example: "  kernelgate open\n  kernelgate open kernels/sdpa_fp8/evidence --policy h200",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "results"
			if len(args) == 1 {
				dir = args[0]
			}
			var judge func(*gates.Evidence) *gates.Verdict
			if policyName != "" {
				policy, file, err := check.ReadPolicy(policyName)
				if err != nil {
					return err
				}
				judge = func(e *gates.Evidence) *gates.Verdict { return gates.Judge(policy, file, e) }
			}
			if err := loopbackAddress("--listen", listen); err != nil {
				return err
			}
			// Evidence next to its kernel may be older than the kernel's lessons.
			lessons, err := check.Lessons(filepath.Join(filepath.Dir(filepath.Clean(dir)), manifest.FileName))
			if err != nil {
				return err
			}
			results, err := pages.OpenFolder(dir, judge, lessons)
			if err != nil {
				return usage.Error{Err: err}
			}
			for path, why := range results.Skipped() {
				fmt.Fprintf(stderr, "kernelgate: %s is left out: %s\n", path, why)
			}
			return servePages(cmd.Context(), listen, results, stdout)
		},
	}
	policyFlag(cmd, &policyName, " to judge all evidence by (default: show the stored verdicts)")
	cmd.Flags().StringVar(&listen, "listen", listen, "loopback address to listen on; port 0 picks a free one")
	return cmd
}

// servePages says where the pages are, and serves them.
func servePages(ctx context.Context, listen string, results *pages.Folder, stdout io.Writer) error {
	l, err := listenPages(ctx, listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d results at http://%s (Ctrl-C stops)\n", results.Count(), l.Addr())
	if searches, err := results.Searches(ctx, pages.SearchFilter{}); err == nil && len(searches) > 0 {
		fmt.Fprintf(stdout, "Searches of kernelgate tune: %d at http://%s/searches\n", len(searches), l.Addr())
	}
	return servePagesOn(ctx, l, results)
}

// loopbackAddress checks the address of pages without a login.
func loopbackAddress(flag, listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || !client.Loopback(host) {
		return usage.Errorf("%s: %q is not a loopback address (write e.g. 127.0.0.1:8080): these pages have no login", flag, listen)
	}
	return nil
}

func listenPages(ctx context.Context, listen string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listening: %w (choose a free address)", err)
	}
	return l, nil
}

// servePagesOn serves until ctx ends.
func servePagesOn(ctx context.Context, l net.Listener, results *pages.Folder) error {
	site := &pages.Server{Source: results, Access: pages.Everybody{}, Version: version(), Done: ctx.Done()}
	handler, err := site.Handler()
	if err != nil {
		return err
	}
	server := &http.Server{Handler: onlyLoopback(handler), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: time.Minute}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("listening on %s: %w", l.Addr(), err)
	}
	return nil
}

// onlyLoopback refuses requests for any other host name. Otherwise a page elsewhere could make its
// own name resolve to this server and read the pages (DNS rebinding).
func onlyLoopback(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !client.Loopback(strings.Trim(host, "[]")) {
			http.Error(w, "These pages are only for this host: open them at 127.0.0.1.", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}
