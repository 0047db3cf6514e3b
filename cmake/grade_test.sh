#!/bin/bash
# grade_test.sh COMMAND…: runs the command if this ctest was asked for tests by name or label (-R, -L, -I), else exits with 77, which ctest
# reports as skipped. So that `ctest` alone stays green while the starters fail, and `ctest -R '^01a'` grades.
ctest_arguments=$(tr '\0' '\n' < "/proc/$PPID/cmdline")
while IFS= read -r argument; do
  case $argument in
    -R* | -L* | -I* | --tests-regex* | --label-regex* | --tests-information*) exec "$@" ;;
  esac
done <<< "$ctest_arguments"
echo "skipped: grading tests run only when named, as in ctest -R '^01a'"
exit 77
