// Package webhook has the events that a volsfu server posts to a backend, and verifies them. docs/api.md describes the
// events, and the order and number of their deliveries.
//
// Requests are signed as the Standard Webhooks specification demands (symmetric signatures, v1), so that receivers in
// other languages can use the libraries of that specification. Requests are untrusted until Receiver.Event or
// Receiver.Verify accepts them.
package webhook
