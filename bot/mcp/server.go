// Package mcp offers submissions to agents over the Model Context Protocol: seven tools, and the
// reports and build logs as resources. Every answer has a text for the model and structured content
// with a schema. Long work is submitted, and polled by its handle. The package decides nothing; package
// submission does the work.
package mcp

import (
	"context"
	_ "embed" // the skill
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/kernelgate/kernelgate/bot/submission"
	"github.com/kernelgate/kernelgate/gates/result"
)

// Skill teaches agents the loop, in the form of a skill file.
//
//go:embed SKILL.md
var Skill string

// A Service judges submissions. *submission.Service is one, of a repository on disk or of a bot.
type Service interface {
	Describe(ctx context.Context, token, kernel string) (*submission.Description, error)
	CheckStatic(ctx context.Context, token string, asked submission.Asked) (*submission.Static, error)
	Submit(ctx context.Context, token string, asked submission.Asked, intent result.Intent, key string) (submission.Status, error)
	Wait(ctx context.Context, token, handle string, report func(submission.Status)) (submission.Status, error)
	Verdict(ctx context.Context, token, handle string) (*result.Result, error)
	Why(ctx context.Context, token, handle string) (*submission.Why, error)
	History(ctx context.Context, token, kernel string) (*submission.History, error)
	File(ctx context.Context, token, handle, name string) (string, error)
}

// instructions is what a client may show its model at the start.
const instructions = "kernelgate judges implementations of kernels. Describe a kernel, check a draft with check_static, submit it as a probe for rounded figures, and submit the best one as a claim for a verdict. Only a claim can PASS. Read the resource kernelgate://skill first."

// maxWait bounds how long status waits, so that no client times out.
const maxWait = 50 * time.Second

// NewServer returns a server that answers for one token.
func NewServer(s Service, token, version string, log *slog.Logger) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "kernelgate", Title: "kernelgate", Version: version}, &mcp.ServerOptions{Instructions: instructions, Logger: log})
	t := tools{s, token}
	t.add(server)
	server.AddResource(&mcp.Resource{URI: "kernelgate://skill", Name: "skill", Title: "How to work with kernelgate", MIMEType: markdown}, t.skill)
	for _, what := range []struct{ name, title, media string }{
		{"report", "Report of a submission", markdown}, {"log", "Output of the compilers", "text/plain"},
	} {
		server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: submission.URI("{handle}", what.name), Name: what.name, Title: what.title, MIMEType: what.media}, t.file)
	}
	return server
}

const markdown = "text/markdown"

// tools answers the calls of one token.
type tools struct {
	s     Service
	token string
}

func (t tools) skill(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return read(r.Params.URI, markdown, Skill), nil
}

// file reads a report or a build log.
func (t tools) file(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := r.Params.URI
	for what, file := range map[string]struct{ name, media string }{
		"report": {submission.ReportFile, markdown}, "log": {submission.LogFile, "text/plain"},
	} {
		before, after, _ := strings.Cut(submission.URI("\x00", what), "\x00")
		handle, ok := strings.CutPrefix(uri, before)
		if handle, is := strings.CutSuffix(handle, after); ok && is {
			text, err := t.s.File(ctx, t.token, handle, file.name)
			if err != nil {
				return nil, mcp.ResourceNotFoundError(uri)
			}
			return read(uri, file.media, text), nil
		}
	}
	return nil, mcp.ResourceNotFoundError(uri)
}

func read(uri, media, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: media, Text: text}}}
}
