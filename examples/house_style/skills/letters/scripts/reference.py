"""Print the reference of a letter to a customer."""

import sys

print("AC-" + "".join(word[0] for word in sys.argv[1:]).upper() + str(sum(map(len, sys.argv[1:]))))
