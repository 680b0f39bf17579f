// Package judge holds what recorder charms have noted against what is promised
// about hooks: their order, what each is told and may see, and that nothing is
// skipped, lost, or passed that has failed.
//
// It runs nothing and waits for nothing: the suites that kill agents and take
// stores away do, and ask it. Only tests below testscripts import it.
package judge
