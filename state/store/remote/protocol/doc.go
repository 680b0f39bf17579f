// Package protocol holds the messages between state/store/remote and state/gateway: store.proto, the code
// generated from it, and the statuses for the stores' errors.
//
// It does not open connections, and does not check rights.
package protocol

//go:generate go -C ../../../../testscripts/cmd/protocolgenerator run . ../../../state/store/remote/protocol
