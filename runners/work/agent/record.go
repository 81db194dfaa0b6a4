package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A record asks the server about earlier measurements of one job. No round is measured before the
// server has counted the attempt, however long the server is away.
type record struct {
	agent *agent
	lease protocol.LeaseResponse
	end   func(error) // ends the job
}

func (r record) Earlier(ctx context.Context, c runners.Code) (was runners.Earlier, err error) {
	err = r.ask(ctx, "asking what was measured before", func() error {
		was, err = r.agent.client.earlier(ctx, r.lease, c)
		return err
	})
	return was, err
}

func (r record) Begin(ctx context.Context, c runners.Code) (attempt runners.Attempt, err error) {
	err = r.ask(ctx, "counting an attempt", func() error {
		attempt, err = r.agent.client.begin(ctx, r.lease, c)
		return err
	})
	return attempt, err
}

// ask retries until the server answers. If the job no longer belongs to this runner, ask ends it.
func (r record) ask(ctx context.Context, doing string, try func() error) error {
	err := r.agent.persist(ctx, doing, try)
	if gone(err) {
		r.end(err)
	}
	return err
}

// earlier asks what the server knows about the code.
func (c *client) earlier(ctx context.Context, l protocol.LeaseResponse, code runners.Code) (runners.Earlier, error) {
	var answer protocol.PriorEvidence
	if err := c.postLarge(ctx, "jobs/"+l.Job+"/earlier", protocol.BuiltCode{Token: l.Token, Code: code}, &answer); err != nil {
		return runners.Earlier{}, err
	}
	was := runners.Earlier{Head: answer.Head, Again: answer.Again}
	if len(answer.Evidence) == 0 {
		return was, nil
	}
	var err error
	if was.Evidence, err = gates.ParseEvidence("the server's evidence", answer.Evidence); err != nil {
		// a retry would give the same answer
		return was, statusError{http.StatusUnprocessableEntity, err.Error()}
	}
	return was, nil
}

// begin counts an attempt.
func (c *client) begin(ctx context.Context, l protocol.LeaseResponse, code runners.Code) (runners.Attempt, error) {
	var answer protocol.BeginResponse
	if err := c.postLarge(ctx, "jobs/"+l.Job+"/begin", protocol.BuiltCode{Token: l.Token, Code: code}, &answer); err != nil {
		return runners.Attempt{}, err
	}
	if answer.Attempt < 1 || answer.CodeNumber < 1 {
		return runners.Attempt{}, statusError{http.StatusUnprocessableEntity, fmt.Sprintf("the attempt has the number %d and the machine code the number %d (run the same version of both)", answer.Attempt, answer.CodeNumber)}
	}
	return runners.Attempt{Number: answer.Attempt, CodeNumber: answer.CodeNumber}, nil
}

// postLarge is post for an answer that may contain evidence.
func (c *client) postLarge(ctx context.Context, path string, message, into any) error {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	resp, err := c.send(ctx, time.Duration(c.patience.Load()), path, message)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, protocol.MaxResult)).Decode(into); err != nil {
		return fmt.Errorf("reading the server's answer: %w", err)
	}
	return nil
}
