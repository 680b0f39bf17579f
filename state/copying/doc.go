// Package copying takes an environment to another store, and makes backups of it and
// environments of those. What is copied is read back and compared before it counts.
//
// It copies keys, and gives them no meaning beside what a copy must not take along: who
// runs, who leads, who claims.
package copying
