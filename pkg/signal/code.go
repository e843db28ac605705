package signal

import (
	"errors"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Code is the stable name of an error.
type Code string

// The error codes. Codes up to CodeRateLimited close the connection; after the other codes the
// connection stays open.
const (
	// CodeUnauthorized: there is no token, or the token is not valid.
	CodeUnauthorized Code = "unauthorized"
	// CodeVersion: the join names a different version of the protocol.
	CodeVersion Code = "version"
	// CodeMalformed: the message is not a JSON object with a type.
	CodeMalformed Code = "malformed"
	// CodeTooLarge: the message exceeds the size limit.
	CodeTooLarge Code = "too_large"
	// CodeRateLimited: the client sent too many messages.
	CodeRateLimited Code = "rate_limited"

	// CodeForbidden: the token does not grant the request.
	CodeForbidden Code = "forbidden"
	// CodeUnknownType: the server does not know the message type.
	CodeUnknownType Code = "unknown_type"
	// CodeNotJoined: the first message is not a join.
	CodeNotJoined Code = "not_joined"
	// CodeAlreadyJoined: the connection has already joined.
	CodeAlreadyJoined Code = "already_joined"
	// CodeInvalid: a field has an invalid form or value.
	CodeInvalid Code = "invalid"
	// CodeIdentityTaken: a participant with this identity is in the room.
	CodeIdentityTaken Code = "identity_taken"
	// CodeLimit: a configured limit is reached.
	CodeLimit Code = "limit"
	// CodeExists: the participant already has a publication with this name.
	CodeExists Code = "exists"
	// CodeNotFound: the publication, tile or quality does not exist.
	CodeNotFound Code = "not_found"
	// CodeUnexpectedAnswer: no offer with this number is unanswered.
	CodeUnexpectedAnswer Code = "unexpected_answer"
	// CodeInvalidSDP: the session description or the candidate cannot be used.
	CodeInvalidSDP Code = "invalid_sdp"
	// CodeResume: the session has ended, or the resume secret is not valid for it. The client must
	// join again.
	CodeResume Code = "resume"
	// CodeDraining: the server is draining and accepts no new participants.
	CodeDraining Code = "draining"
	// CodeSlowReader: the client did not read its messages in time.
	CodeSlowReader Code = "slow_reader"
	// CodeReplaced: the session continued on another connection.
	CodeReplaced Code = "replaced"
	// CodeKicked: an operator removed the participant, and the client must not rejoin
	// automatically; or the operator's ban is still in effect.
	CodeKicked Code = "kicked"
	// CodeClosed: an operator closed the room.
	CodeClosed Code = "closed"
	// CodeRevoked: an operator revoked the token.
	CodeRevoked Code = "revoked"
	// CodeConnection: the peer connection failed, or the client ended it.
	CodeConnection Code = "connection"
	// CodeInternal: the server failed; the server's log contains the reason.
	CodeInternal Code = "internal"
)

// closing lists the codes that close the connection, nonClosing the codes that do not.
var (
	closing    = []Code{CodeUnauthorized, CodeVersion, CodeMalformed, CodeTooLarge, CodeRateLimited}
	nonClosing = []Code{
		CodeForbidden, CodeUnknownType, CodeNotJoined, CodeAlreadyJoined, CodeInvalid, CodeIdentityTaken, CodeLimit,
		CodeExists, CodeNotFound,
		CodeUnexpectedAnswer, CodeInvalidSDP, CodeResume, CodeDraining, CodeSlowReader, CodeReplaced, CodeKicked,
		CodeClosed,
		CodeRevoked, CodeConnection,
		CodeInternal,
	}
)

// Codes lists every code.
func Codes() []Code { return slices.Concat(closing, nonClosing) }

// Closes reports whether an error with this code closes the connection.
func (c Code) Closes() bool { return slices.Contains(closing, c) }

// NewError returns an error with a code, to be sent to a client.
func NewError(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// ErrorFor returns the reply to the request with the given id after err occurred in decoding,
// validating or executing the request. An *Error inside err is returned unchanged. An error of this
// package, or of the validation in package volumetric, is returned with its code and text. Every
// other error becomes CodeInternal without the text of err, which belongs in the server's log.
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
