// Package dashboard tests the pages of juju dashboard and neco dashboard in a browser, while an
// environment is deployed, broken and repaired.
//
// It is a separate module, so that bijou does not depend on the driver of the browser. It builds the
// binary and calls it as an operator does. The lane dashboard of .ci/long runs it.
package dashboard
