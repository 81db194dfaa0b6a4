package serve

import (
	"context"
	"net/http"
	"slices"

	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/mcp"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/submission"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// MCP is who may submit implementations of kernels without a pull request.
type MCP struct {
	TokensFile string       `yaml:"tokens_file" eg:"/etc/kernelgate/agents" doc:"File with a name, a token and the repositories (owner/name, or * for all) of one agent in each line. The bot reads it again when it changes."`
	Tokens     inlineSecret `yaml:"tokens" doc:"Refused: use tokens_file."`
}

// mcpPath is where agents connect.
const mcpPath = "/mcp"

func (c *checker) checkMCP() { c.secretFile("mcp.tokens_file", c.MCP.TokensFile) }

// hostSubmissions makes the service of agents; nil if there are none.
func (s *Server) hostSubmissions(p *planner.Planner) *submission.Hosted {
	if s.agentTokens == nil {
		return nil
	}
	return submission.NewHosted(submission.HostedOptions{
		Journal: s.Journal, Queue: s.Jobs, Bundles: s.Journal.Bundles, Artifacts: s.Journal.Artifacts, Planner: p,
		Repositories: func() (map[int64]string, bool) {
			all := s.Bot.Listed() // before they are read
			return s.Bot.ActiveRepositories(), all
		},
		DefaultBranch: func(ctx context.Context, repo string) (string, error) {
			r, err := s.Client.Repository(ctx, repo)
			if err != nil {
				return "", err
			}
			return r.DefaultBranch, nil
		},
		Owners: func() (names []string) {
			for name := range s.agentTokens.Tokens() {
				names = append(names, name)
			}
			slices.Sort(names)
			return names
		},
		May:    func(owner, repo string) bool { return s.agentTokens.Tokens().May(owner, repo) },
		Judged: func(ctx context.Context, runner, kernel, fault string) { s.Runners.Judged(ctx, runner, kernel, fault) },
		Now:    s.opt.Now, Log: s.log,
	})
}

// agentHandler offers the tools.
func (s *Server) agentHandler() http.Handler {
	return mcp.NewHandler(s.agents, s.agentTokens.Tokens, s.opt.Version, s.log)
}

// endingAgentsWith ends the requests of agents when the server stops: they may wait for long.
func endingAgentsWith(polls context.Context, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(polls, cancel)()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// results hears of all jobs.
func (s *Server) results() fleet.Results {
	if s.agents == nil {
		return s.Bot
	}
	return results{s.Bot, s.agents}
}

// results are those of changes, and those of submissions.
type results struct{ changes, submissions fleet.Results }

func (r results) of(job string) fleet.Results {
	if submission.IsSubmission(job) {
		return r.submissions
	}
	return r.changes
}

func (r results) Started(ctx context.Context, job string, token uint64, by fleet.Runner) error {
	return r.of(job).Started(ctx, job, token, by)
}

func (r results) Lost(ctx context.Context, job string, token uint64, why string) error {
	return r.of(job).Lost(ctx, job, token, why)
}

func (r results) Progress(job string, p runners.Event) { r.of(job).Progress(job, p) }

func (r results) Earlier(ctx context.Context, job string, token uint64, c runners.Code) (protocol.PriorEvidence, error) {
	return r.of(job).Earlier(ctx, job, token, c)
}

func (r results) Begin(ctx context.Context, job string, token uint64, c runners.Code) (runners.Attempt, error) {
	return r.of(job).Begin(ctx, job, token, c)
}

func (r results) Built(ctx context.Context, job string, token uint64, by fleet.Runner, b fleet.Build) (bool, error) {
	return r.of(job).Built(ctx, job, token, by, b)
}

func (r results) Finished(ctx context.Context, job string, token uint64, by fleet.Runner, evidence, log []byte, artifacts []string) error {
	return r.of(job).Finished(ctx, job, token, by, evidence, log, artifacts)
}
