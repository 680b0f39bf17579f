// Package dashboard watches the page of juju dashboard and neco dashboard in a browser, while an
// environment is deployed, breaks and is mended.
//
// It is a module of its own, so that what drives the browser is no part of bijou; it builds the binary
// and calls it as an operator does. The lane dashboard of .ci/long runs it.
package dashboard
