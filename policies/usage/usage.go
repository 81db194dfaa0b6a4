// Package usage is the mistakes of users: an invalid file, name or option. The program reports one without a stack and ends with
// status 2, so that whoever runs it knows that trying again does not help.
package usage

import "fmt"

// An Error is a mistake of the user. Its text names the place and says what to do.
type Error struct{ Err error }

func (e Error) Error() string { return e.Err.Error() }
func (e Error) Unwrap() error { return e.Err }

// Errorf returns an Error with a message.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }
