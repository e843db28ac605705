package signal

import (
	"errors"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Code is the stable name of an error.
type Code string

// The codes. Those up to CodeRateLimited close the connection; the others leave it as it was.
const (
	// CodeUnauthorized: no token, or one that is not valid.
	CodeUnauthorized Code = "unauthorized"
	// CodeVersion: the join names another version of the protocol.
	CodeVersion Code = "version"
	// CodeMalformed: not a JSON object with a type.
	CodeMalformed Code = "malformed"
	// CodeTooLarge: a message over the limit.
	CodeTooLarge Code = "too_large"
	// CodeRateLimited: too many messages.
	CodeRateLimited Code = "rate_limited"

	// CodeForbidden: the token does not grant this.
	CodeForbidden Code = "forbidden"
	// CodeUnknownType: a message type that the server does not know.
	CodeUnknownType Code = "unknown_type"
	// CodeNotJoined: the first message must be a join.
	CodeNotJoined Code = "not_joined"
	// CodeAlreadyJoined: a second join on one connection.
	CodeAlreadyJoined Code = "already_joined"
	// CodeInvalid: a field has a form or a value that it must not have.
	CodeInvalid Code = "invalid"
	// CodeIdentityTaken: somebody with this identity is in the room.
	CodeIdentityTaken Code = "identity_taken"
	// CodeLimit: a configured limit is reached.
	CodeLimit Code = "limit"
	// CodeExists: the participant publishes under this name already.
	CodeExists Code = "exists"
	// CodeNotFound: no such publication, tile or quality.
	CodeNotFound Code = "not_found"
	// CodeUnexpectedAnswer: no offer of this number waits for an answer.
	CodeUnexpectedAnswer Code = "unexpected_answer"
	// CodeInvalidSDP: the description or candidate cannot be used.
	CodeInvalidSDP Code = "invalid_sdp"
	// CodeResume: the session is gone, or the secret is not its own; join anew.
	CodeResume Code = "resume"
	// CodeDraining: the server is about to stop and takes nobody new.
	CodeDraining Code = "draining"
	// CodeSlowReader: the client did not read its messages in time.
	CodeSlowReader Code = "slow_reader"
	// CodeReplaced: the session went on over another connection.
	CodeReplaced Code = "replaced"
	// CodeKicked: an operator removed the participant, who is not to come back by itself; or the operator's ban still
	// lasts.
	CodeKicked Code = "kicked"
	// CodeClosed: an operator closed the room.
	CodeClosed Code = "closed"
	// CodeRevoked: an operator revoked the token.
	CodeRevoked Code = "revoked"
	// CodeConnection: the peer connection failed, or the client ended it.
	CodeConnection Code = "connection"
	// CodeInternal: the server failed; its log says why.
	CodeInternal Code = "internal"
)

// closing are the codes that close the connection, nonClosing those that leave it as it was.
var (
	closing    = []Code{CodeUnauthorized, CodeVersion, CodeMalformed, CodeTooLarge, CodeRateLimited}
	nonClosing = []Code{
		CodeForbidden, CodeUnknownType, CodeNotJoined, CodeAlreadyJoined, CodeInvalid, CodeIdentityTaken, CodeLimit, CodeExists, CodeNotFound,
		CodeUnexpectedAnswer, CodeInvalidSDP, CodeResume, CodeDraining, CodeSlowReader, CodeReplaced, CodeKicked, CodeClosed,
		CodeRevoked, CodeConnection,
		CodeInternal,
	}
)

// Codes lists every code.
func Codes() []Code { return slices.Concat(closing, nonClosing) }

// Closes tells whether an error with this code closes the connection.
func (c Code) Closes() bool { return slices.Contains(closing, c) }

// NewError makes an error with a code, to be sent to a client.
func NewError(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// ErrorFor is the message that answers the request of that id, where decoding, validating or carrying it out gave err: an *Error inside
// err as it is, an error of this package or of volumetric's validation with its code and text, anything else as CodeInternal without
// its text, which is the log's.
func ErrorFor(id string, err error) *Error {
	var reply Error
	var known *Error
	switch {
	case errors.As(err, &known):
		reply = *known
	case errors.Is(err, ErrMalformed):
		reply = Error{Code: CodeMalformed, Message: err.Error()}
	case errors.Is(err, ErrTooLarge):
		reply = Error{Code: CodeTooLarge, Message: err.Error()}
	case errors.Is(err, ErrUnknownType):
		reply = Error{Code: CodeUnknownType, Message: err.Error()}
	case errors.Is(err, ErrInvalid), errors.Is(err, volumetric.ErrName), errors.Is(err, volumetric.ErrPublication):
		reply = Error{Code: CodeInvalid, Message: err.Error()}
	default:
		reply = Error{Code: CodeInternal, Message: "internal error"}
	}
	reply.Header = Header{Type: TypeError, ID: id}
	return &reply
}
