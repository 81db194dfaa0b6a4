package submission

import "context"

// answer returns what do finds for an owner. If another bot leads by then, it may have told the owner more, so there is
// no answer but ErrNotLeading.
func answer[T any](ctx context.Context, s *Service, owner string, do func(context.Context) (T, error)) (out T, err error) {
	term, err := s.place.term()
	if err != nil {
		return out, ErrNotLeading
	}
	leading, free, err := s.place.whileLeading(ctx)
	if err != nil {
		return out, ErrNotLeading
	}
	defer free()
	if err = s.place.enter(leading, owner); err == nil {
		out, err = do(leading)
	}
	if now, lost := s.place.term(); lost != nil || now != term {
		return *new(T), ErrNotLeading
	}
	return out, err
}

// An AskAgain is an error that goes away, and that the asker has no part in.
type AskAgain string

func (a AskAgain) Error() string { return string(a) }

// ErrNotLeading stands in for an answer of a bot that may be old.
const ErrNotLeading AskAgain = "this bot does not lead any more, so its answer may be old (ask again; a submission with the same idempotency_key is not made twice)"
