package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/mcp"
	"github.com/kernelgate/kernelgate/bot/submission"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// localToken is the owner of all submissions over standard input: whoever can start the program.
const localToken = "local"

func mcpCommand(stdout, stderr io.Writer) *cobra.Command {
	opt := check.Options{Version: version(), Now: time.Now, Fetcher: recordings.Here(os.Getenv)}
	gpu, skill, listen, tokens := "", false, "", ""
	opt.Runner = measure.Auto
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Judge kernels for an agent, over the Model Context Protocol",
		Long: "Serves seven tools on standard input and output: describe, check_static, submit, status, verdict,\n" +
			"why and history. They work on the repository of the current folder: problem and policy are those of\n" +
			"the base branch, and the agent sends the new implementation as files or as a commit.\n\n" +
			"A probe shows rounded figures. Only a claim can PASS, and claims spend the error rate of the policy.\n" +
			"Submissions and their evidence are in results/submissions. SKILL.md teaches agents the loop.\n\n" +
			"With --listen it serves the same tools over HTTP to agents that cannot read this host's files. Each\n" +
			"has a token of the file --tokens, and its own submissions and budget.",
		Example: "  kernelgate mcp\n  kernelgate mcp --base origin/main\n  kernelgate mcp --listen 127.0.0.1:8080 --tokens /etc/kernelgate/agents\n  kernelgate mcp --skill > .github/skills/kernelgate/SKILL.md",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if skill {
				fmt.Fprint(stdout, mcp.Skill)
				return nil
			}
			if (listen == "") != (tokens == "") {
				return usage.Errorf("--listen and --tokens belong together (a server without tokens would judge for everybody)")
			}
			if err := measureOn(&opt.Config, gpu); err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(stderr, nil))
			s, err := submission.Open(cmd.Context(), opt, log)
			if err != nil {
				return err
			}
			defer s.Close()
			serve := func(ctx context.Context) error { return serveStdio(ctx, s, log) }
			if listen != "" {
				if serve, err = serveHTTP(cmd.Context(), s, listen, tokens, log); err != nil {
					return err
				}
			}
			return whileWorking(cmd.Context(), s, serve)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Dir, "dir", "", "folder in the repository (default: the current one)")
	f.StringVar(&opt.Base, "base", "", "branch that candidates are compared with (default: origin/HEAD, main or master)")
	policyFlag(cmd, &opt.Policy, " (default: the base's "+check.PolicyFile+")")
	includeFlag(cmd, &opt.Includes)
	toolchainFlag(cmd, &opt.Toolchains)
	gpuFlag(cmd, &gpu)
	f.StringVar(&listen, "listen", "", "serve over HTTP on this address instead of standard input and output; a proxy adds TLS")
	f.StringVar(&tokens, "tokens", "", "with --listen: file with a name and a token in each line")
	f.BoolVar(&skill, "skill", false, "print the skill file that teaches agents the loop")
	complete(cmd, "base", nil)
	return cmd
}

// whileWorking serves, and measures what is submitted, until one of the two ends.
func whileWorking(ctx context.Context, s *submission.Local, serve func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	worked := make(chan error, 1)
	go func() {
		worked <- s.Run(ctx)
		end()
	}()
	err := serve(ctx)
	end()
	if failed := <-worked; failed != nil {
		return failed
	}
	return err
}

// serveStdio answers on standard input and output until the client leaves.
func serveStdio(ctx context.Context, s *submission.Local, log *slog.Logger) error {
	err := mcp.NewServer(s, localToken, version(), log).Run(ctx, &sdk.StdioTransport{})
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
		return usage.Errorf("the client broke the protocol: %w", err)
	}
	return nil
}

// serveHTTP opens the address for the owners of tokens. Strangers' code needs a sandbox.
func serveHTTP(ctx context.Context, s *submission.Local, listen, tokens string, log *slog.Logger) (func(context.Context) error, error) {
	owners, err := mcp.ReadTokens(tokens, false)
	if err != nil {
		return nil, err
	}
	if !sandbox.Probe().Works() {
		return nil, usage.Errorf("--listen: this host has no working sandbox for the code of agents (kernelgate doctor says why)")
	}
	l, err := listenPages(ctx, listen)
	if err != nil {
		return nil, err
	}
	log.Info("serving agents", "url", "http://"+l.Addr().String(), "tokens", len(owners))
	server := &http.Server{Handler: mcp.NewHandler(s, func() mcp.Tokens { return owners }, version(), log), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, MaxHeaderBytes: 1 << 16}
	return func(ctx context.Context) error {
		context.AfterFunc(ctx, func() { server.Close() })
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving agents on %s: %w", l.Addr(), err)
		}
		return nil
	}, nil
}
