package embedded

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// appOf checks an App's JWT: the signature with the App's key, and a life of ten
// minutes at most. Its dates are held against the hub's clock, in GitHub's words.
func (s *Server) appOf(text string) (*App, error) {
	var app *App
	claims := jwt.MapClaims{}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	_, err := parser.ParseWithClaims(text, claims, func(*jwt.Token) (any, error) {
		issuer := fmt.Sprint(claims["iss"])
		if app = find(s.apps, func(a *App) bool { return itoa(a.id) == issuer }); app == nil {
			return nil, &apiError{Status: 404, Message: "Integration not found"}
		}
		return &app.opt.Key.PublicKey, nil
	})
	if unknown, ok := errors.AsType[*apiError](err); ok {
		return nil, unknown
	}
	if err != nil {
		return nil, unauthorised("A JSON web token could not be decoded")
	}
	now := s.opt.Clock()
	issued, errIssued := claims.GetIssuedAt()
	expires, errExpires := claims.GetExpirationTime()
	switch {
	case errExpires != nil || expires == nil || !expires.After(now):
		return nil, unauthorised("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case errIssued != nil || issued == nil:
		return nil, unauthorised("Missing 'issued at' claim ('iat') in assertion")
	case issued.After(now.Add(time.Minute)):
		return nil, unauthorised("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case expires.After(now.Add(10*time.Minute + time.Second)):
		return nil, unauthorised("'Expiration time' claim ('exp') is too far in the future")
	}
	return app, nil
}
