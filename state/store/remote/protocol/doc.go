// Package protocol holds the messages between state/store/remote and state/gateway: store.proto,
// the code made from it, and which of the stores' errors is which status.
//
// It decides nothing, and neither listens nor dials.
package protocol

//go:generate go -C ../../../../testscripts/cmd/protocolgenerator run . ../../../state/store/remote/protocol
