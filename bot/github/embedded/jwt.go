package embedded

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// claims are the three that GitHub reads from an App's JWT.
type claims struct {
	Issuer  json.RawMessage `json:"iss"`
	Issued  json.Number     `json:"iat"`
	Expires json.Number     `json:"exp"`
}

// appOf checks an App's JWT: the signature with the App's key, and a life of ten
// minutes at most.
func (s *Server) appOf(jwt string) (*App, error) {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return nil, unauthorised("A JSON web token could not be decoded")
	}
	var header struct{ Alg string }
	var c claims
	if decodePart(parts[0], &header) != nil || decodePart(parts[1], &c) != nil || header.Alg != "RS256" {
		return nil, unauthorised("A JSON web token could not be decoded")
	}
	app := s.appByIssuer(string(c.Issuer))
	if app == nil {
		return nil, &apiError{Status: 404, Message: "Integration not found"}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(&app.opt.Key.PublicKey, crypto.SHA256, digest[:], signature) != nil {
		return nil, unauthorised("A JSON web token could not be decoded")
	}
	now := s.opt.Clock()
	exp, err := c.Expires.Float64()
	if err != nil {
		return nil, unauthorised("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	}
	expires := time.Unix(int64(exp), 0)
	switch iat, err := c.Issued.Float64(); {
	case err != nil:
		return nil, unauthorised("Missing 'issued at' claim ('iat') in assertion")
	case time.Unix(int64(iat), 0).After(now.Add(time.Minute)):
		return nil, unauthorised("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case !expires.After(now):
		return nil, unauthorised("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case expires.After(now.Add(10*time.Minute + time.Second)):
		return nil, unauthorised("'Expiration time' claim ('exp') is too far in the future")
	}
	return app, nil
}

func (s *Server) appByIssuer(raw string) *App {
	id, err := strconv.ParseInt(strings.Trim(raw, `"`), 10, 64)
	if err != nil {
		return nil
	}
	for _, a := range s.apps {
		if a.id == id {
			return a
		}
	}
	return nil
}

func decodePart(part string, into any) error {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return fmt.Errorf("decode a JSON web token: %w", err)
	}
	return json.Unmarshal(raw, into)
}
