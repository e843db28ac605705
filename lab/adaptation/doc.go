// Package adaptation measures the claims about what publishers need not send: how much they save, and what it costs whoever then asks for what is not sent; and what
// adapting takes of a server's processor time. Each check is a type of its own; each measures on the goroutine that calls Run.
package adaptation
