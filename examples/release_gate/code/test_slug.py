import unittest

from slug import slug


class SlugTest(unittest.TestCase):
    def test_words_are_joined_by_hyphens(self):
        assert slug("The Old Press") == "the-old-press"


if __name__ == "__main__":
    unittest.main()
