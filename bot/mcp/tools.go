package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/kernelgate/kernelgate/bot/submission"
	"github.com/kernelgate/kernelgate/gates/result"
)

// The arguments of the tools.
type (
	describeIn struct {
		Kernel string `json:"kernel,omitempty" doc:"Name or folder of a kernel. Without it, the kernels are listed."`
	}
	submitIn struct {
		submission.Asked
		Intent result.Intent `json:"intent" doc:"probe: rounded figures on public shapes, free, cannot pass. claim: a verdict by the whole policy, spends budget."`
		Key    string        `json:"idempotency_key,omitempty" doc:"A repeated submission with the same key returns the same handle. Without it, the content is the key: choose a new key to have the same files measured again."`
	}
	handleIn struct {
		Handle string `json:"handle" doc:"From submit."`
	}
	statusIn struct {
		handleIn
		Wait float64 `json:"wait_seconds,omitempty" doc:"Return earlier only if it is done. At most 50."`
	}
	historyIn struct {
		Kernel string `json:"kernel,omitempty" doc:"Only submissions of this kernel."`
	}
)

// An answer has a form for people.
type answer interface{ Text() string }

// add registers the tools.
func (t tools) add(server *mcp.Server) {
	tool(server, "describe", "What is asked of a kernel: arguments, public shapes, tolerance, goal, device, the fastest possible time, the files to replace, and the budget that is left. Without a kernel, it lists the kernels.", true,
		func(ctx context.Context, _ *mcp.CallToolRequest, in describeIn) (*submission.Description, error) {
			return t.s.Describe(ctx, t.token, in.Kernel)
		})
	tool(server, "check_static", "Compile an implementation without running it: compiler messages, resources, hash of the machine code, and whether you have submitted it before. Free.", true,
		func(ctx context.Context, _ *mcp.CallToolRequest, in submission.Asked) (*submission.Static, error) {
			return t.s.CheckStatic(ctx, t.token, in)
		})
	tool(server, "submit", "Submit an implementation, as a probe or a claim. It returns a handle at once; the work is queued. Poll status, then read verdict.", false,
		func(ctx context.Context, _ *mcp.CallToolRequest, in submitIn) (*Status, error) {
			s, err := t.s.Submit(ctx, t.token, in.Asked, in.Intent, in.Key)
			return &Status{s}, err
		})
	tool(server, "status", "How far a submission is. With wait_seconds it waits for the end, and reports progress.", true, t.status)
	tool(server, "verdict", "The result of a submission that is done: outcome, reason, speedup by shape, failures, and what would make it pass.", true,
		func(ctx context.Context, _ *mcp.CallToolRequest, in handleIn) (*result.Result, error) {
			return t.s.Verdict(ctx, t.token, in.Handle)
		})
	tool(server, "why", "Why a submission got its result: each gate, resources, messages of compilers, share of the roofline, and why the times differ: cause, limiter of each side, counters.", true,
		func(ctx context.Context, _ *mcp.CallToolRequest, in handleIn) (*Why, error) {
			w, err := t.s.Why(ctx, t.token, in.Handle)
			return &Why{w}, err
		})
	tool(server, "history", "What you have submitted, with outcome and reason, the newest first.", true,
		func(ctx context.Context, _ *mcp.CallToolRequest, in historyIn) (*submission.History, error) {
			return t.s.History(ctx, t.token, in.Kernel)
		})
}

// tool registers one tool. The schemas come from the Go types, as all schemas of the project do. A
// mistake of the caller is an answer that the model reads, and not an error of the protocol.
func tool[In any, Out answer](server *mcp.Server, name, about string, readOnly bool, do func(context.Context, *mcp.CallToolRequest, In) (Out, error)) {
	closed, harmless := false, false
	server.AddTool(&mcp.Tool{
		Name: name, Description: about, InputSchema: closedSchema[In](), OutputSchema: schemaOf[Out](),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly, IdempotentHint: true, DestructiveHint: &harmless, OpenWorldHint: &closed},
	}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in In
		if err := decode(r.Params.Arguments, &in); err != nil {
			return refused(fmt.Errorf("the arguments of %s: %w", name, err)), nil
		}
		out, err := do(ctx, r, in)
		if err != nil {
			return refused(err), nil
		}
		data, err := json.Marshal(out)
		if err != nil {
			return nil, fmt.Errorf("writing the answer of %s: %w", name, err)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: out.Text()}}, StructuredContent: json.RawMessage(data)}, nil
	})
}

// askAgain marks refusals that go away, for programs that read no text.
const askAgain = "kernelgate/ask-again"

func refused(err error) *mcp.CallToolResult {
	r := &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}
	if again := submission.AskAgain(""); errors.As(err, &again) {
		r.Meta = mcp.Meta{askAgain: true}
	}
	return r
}

// status waits as long as the caller wants, and sends progress if the caller asked for it.
func (t tools) status(ctx context.Context, r *mcp.CallToolRequest, in statusIn) (*Status, error) {
	if in.Wait < 0 {
		return nil, fmt.Errorf("wait_seconds is %g (write 0 or more)", in.Wait)
	}
	wait := min(time.Duration(in.Wait*float64(time.Second)), maxWait)
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	token := r.Params.GetProgressToken()
	sent := 0
	s, err := t.s.Wait(waiting, t.token, in.Handle, func(s submission.Status) {
		if token == nil || r.Session == nil || wait == 0 {
			return
		}
		sent++ // progress must grow, and the parts of a step begin again with each step
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(sent), Message: Status{s}.Text()})
	})
	return &Status{s}, err
}

// A Status is the state of a submission as an answer.
type Status struct{ submission.Status }

// Text is the state for a reader.
func (s Status) Text() string {
	text := fmt.Sprintf("Submission %s (%s of %s) is %s.", s.Handle, s.Intent, s.Kernel, s.State)
	switch {
	case s.State == submission.Done:
		return text + " Read its verdict."
	case s.State == submission.Queued:
		text += fmt.Sprintf(" %d before it.", s.Ahead)
	case s.Total > 0:
		text += fmt.Sprintf(" %s, %d of %d.", s.Step, s.Finished, s.Total)
	default:
		text += " " + s.Step + "."
	}
	if s.Seconds > 0 {
		text += fmt.Sprintf(" Such submissions took %.0f s on average.", s.Seconds)
	}
	return text + " It costs " + s.Cost + "."
}

// A Why is an explanation as an answer.
type Why struct{ *submission.Why }

// Text is the explanation for a reader.
func (w Why) Text() string { return w.Why.Text }
