"""Which answers are the same by value: a table, each line in both directions."""
# ruff: noqa: RUF001  (signs that look like ASCII are what is compared here)

from __future__ import annotations

from fractions import Fraction

import pytest

from interbench_tasks.answers.comparing import latex_from, same_value
from interbench_tasks.answers.notation import is_label, is_prose, listed, named_from, names_differ, notation
from interbench_tasks.answers.number_words import number_from_words, scale_word
from interbench_tasks.answers.numbers import Quantity
from interbench_tasks.answers.quantities import quantity_from, without_unit
from interbench_tasks.expressions import ExpressionPool, Limits


@pytest.fixture(scope="module")
def pool():
    made = ExpressionPool(limits=Limits(seconds=5.0))
    yield made
    made.close()


def compared(left: str, right: str, pool: ExpressionPool | None):
    """The result, and the pairs that went to math-verify; without a pool there must be none."""
    comparison, asked = same_value(left, right), []
    try:
        pair = next(comparison)
        while True:
            asked.append(pair)
            assert pool is not None, f"asked math-verify: {pair}"
            pair = comparison.send(pool.compare(*pair))
    except StopIteration as finished:
        return finished.value, asked


CHEAP_SAME = [
    # currency, thousands, decimals
    ("46", "$46.00"),
    ("46", "46 dollars"),
    ("€5", "5"),
    ("6,000", "6000"),
    ("$7{,}250", "7250"),
    (r"1\,234", "1234"),
    ("1 234", "1,234"),
    ("1,00,000", "100000"),
    ("1.000.000", "1000000"),
    ("1.234.567,50", "1234567.5"),
    ("46,00 €", "46"),
    ("€ 1.234,56", "1234.56"),
    ("minus 46", "-46"),
    ("Negative 0.5", "-1/2"),
    ("#### 46", "46"),
    (r"2x = 6 \Rightarrow x = 3", "3"),
    ("3.50", "3.5 "),
    (".3", "0.3"),
    ("≈ 5", "5"),
    # signs
    ("−5", "-5"),
    ("- 5", "-5"),
    ("+5", "5"),
    ("(5)", "5"),
    ("-0", "0"),
    (r"\frac{-20}{21}", r"-\frac{20}{21}"),
    (r"-\frac{20}{21}", r"\frac{20}{-21}"),
    # fractions, percent, powers of ten, mixed numbers
    ("1/2", "0.5"),
    (r"\frac12", "0.5"),
    (r"\dfrac{1}{2}", r"\frac{1}{2}"),
    ("50%", "0.5"),
    (r"50\%", "50"),
    ("13 %", "13 percent"),
    (r"6 \times 10^3", "6000"),
    ("6e3", "6,000"),
    ("10^{-3}", "0.001"),
    (r"2\frac{1}{2}", "2.5"),
    (r"-2\frac12", "-2.5"),
    ("2 1/2", "5/2"),
    ("1½", "1.5"),
    ("1:64", "1 : 64"),
    ("1:64", "1/64"),
    ("3 to 4", "3:4"),
    # words
    ("twelve", "12"),
    ("twelve dollars", "$12"),
    ("minus five", "-5"),
    ("three quarters", "0.75"),
    ("1.5 million", "1,500,000"),
    ("two hundred and five", "205"),
    # names, chains
    ("x = 3", "3"),
    ("= 3 = 3.0", "3"),
    ("2+3 = 5", "5"),
    ("5=s", "s = 5"),
    (r"=\frac{7}{4}", "1.75"),
    ("Area = 12 cm^2", "12"),
    ("S.A. = 12", "Surface area: 12".replace(":", " =")),
    (r"\angle ABC = 40^\circ", "40°"),
    (r"\frac{10}{3} \approx 3.33", "10/3"),
    (r"\frac{10}{3} \approx 3.33", "3.33"),
    ("y = 2x", "f(x) = 2x"),
    # units
    ("144cm^3", "144"),
    (r"120 \mathrm{~cm}^{2}", "120 square centimeters"),
    ("1 m", "100 cm"),
    ("1 m^2", "10000 cm^2"),
    ("2 hours", "120 minutes"),
    ("24 units", "24"),
    ("40°", "40"),
    (r"40^\circ", "40 degrees"),
    ("212°T", "212"),
    ("118掳T", "118°"),
    ("N 34° W", r"n 34^\circ W"),
    ("10km / h", "10 km/h"),
    ("10km/h", "10"),
    ("60 mph", "60 mi/h"),
    # points, intervals, sets, lists
    ("(0, 14)", "(0,14.0)"),
    ("(1/2,2)", "(0.5, 2)"),
    (r"$(x, y)=\left(315^{\circ}, 1\right)$", "(315,1)"),
    (r"\{1,2\}", "{2,1}"),
    ("1, 2", "2 and 1"),
    ("1, 2", "2; 1; 1"),
    ("-4.9\n-4.9", "-4.9"),
    ("x=2 or x=-3", "-3, 2"),
    (r"\pm 3", "3, -3"),
    (r"x = \pm 3", "x=3 or x=-3"),
    (r"[-5,-3) \cup(-3,5]", "(-3,5] ∪ [-5,-3)"),
    (r"(-\infty, 4]", "(-∞,4]"),
    # texts
    ("even", "Even."),
    ("Bugs Bunny", "bugs bunny"),
    (r"\text{(C)}", "(C)"),
    (r"domain: (-\infty, 1] and range: [0, \infty)", "Domain: (-∞,1], and range: [0, ∞)"),
    ("Increasing on (1, 2.0)", "increasing on (1,2)"),
    ("y <= 5", r"y \leq 5"),
    ("1/0", "1/0"),
]
CHEAP_OTHER = [
    ("-3", "3"),
    ("minus 46", "46"),
    ("46,00", "4600"),
    (r"2x = 6 \Rightarrow x = 3", "6"),
    ("$7{,}250", "250"),
    ("0.7", "0.3"),
    ("100", "1,00"),
    ("1,5", "15"),
    ("2 1/2", "21/2"),
    (r"2\frac{1}{2}", r"\frac{21}{2}"),
    ("50", "0.5"),
    ("5%", "0.5"),
    ("1/3", "0.33"),
    ("1/3", "0.333333"),
    ("x = -3", "3"),
    ("x = 8", "y=8"),
    ("f(x)=x", "g(x)=x"),
    ("x^2+y^2=49", "49"),
    ("(x+3)^2+(y+3)^2=9", "9"),
    (r"y \leq 5", "5"),
    ("2:30", "2.3"),
    ("5 cm", "5 m"),
    ("5 cm", "5 cm^2"),
    ("10 km/h", "10 m/s"),
    ("N 34° W", "34"),
    ("(0,14)", "[0,14]"),
    ("(0,14)", "(0,14]"),
    ("(2, 1)", "(1, 2)"),
    ("(1,2)", "(1,2,3)"),
    ("1,2", "1,2,3"),
    ("{1,2}", "{1,3}"),
    (r"\pm 3", "3"),
    ("even", "odd"),
    ("domain: (2,8] and range: [6,8)", "domain: [6,8) and range: (2,8]"),
    ("increasing on (1,2)", "decreasing on (1,2)"),
    ("True", "False"),
    ("", "3"),
    ("9,999", "9.999"),
    ("9" * 5000, "9"),
]
PROVEN_SAME = [
    (r"4\sqrt{3}", r"\sqrt{48}"),
    ("4√3", r"4\sqrt3"),
    ("2sqrt(3)", r"\sqrt{12}"),
    (r"\frac{9\sqrt{3}}{2}", r"4.5\sqrt3"),
    (r"36\pi \mathrm{cm}^3", r"36\pi"),
    (r"Area $=121 \pi \mathrm{cm}^{2}$", "121π cm²"),
    (r"\frac{3}{4}x", "0.75 x"),
    ("72 x-2 x^3", "-2x^3+72x"),
    ("(x+1)^2", "x^2+2x+1"),
    ("x**2 + 1", "1 + x^2"),
    (r"g(x)=\ln x+4", r"\ln(x)+4"),
    ("f(x)=|x-3|", "|3-x|"),
    (r"3 \cos (2 \pi x+4 \pi)-6", "3cos(2πx)-6"),
    ("x^{2}+y^{2}=49", "y^2+x^2-49=0"),
    (r"\frac{(x+3)^2}{25}-\frac{(y+3)^2}{25}=1", "(x+3)^2-(y+3)^2=25"),
    ("y=x-5", "x-y=5"),
    (r"y+3=\frac{3}{4}(x-2)", "y=0.75x-4.5"),
    (r"5 \ge y", r"y \leq 5"),
    (r"x \leq 4", r"(-\infty,4]"),
    (r"(\sqrt{8}, 1)", r"(2\sqrt{2}, 1)"),
    (r"2 \pm \sqrt{3}", r"2-\sqrt{3}, 2+\sqrt{3}"),
    ("2^3", "8"),
]
PROVEN_OTHER = [
    ("y=x-5", "x-5 and 2"),
    ("2x", "3x"),
    ("3x", "3"),
    ("x", "y"),
    ("y<5", r"y \leq 5"),
    ("y<2x+6", "y>2x+6"),
    (r"\sqrt{2}", "1.414"),
    (r"\pi", "3.14"),
    (r"-\sqrt{2}", r"\sqrt{2}"),
    (r"10^{-13}\pi", r"2 \cdot 10^{-13}\pi"),
    ("5^2", "5"),
    (r"(\sqrt{8}, 1)", r"(2\sqrt{3}, 1)"),
    ("N 34° W", "S 34° W"),
]


@pytest.mark.parametrize(("left", "right"), CHEAP_SAME)
def test_notations_of_one_answer_are_equal_without_math_verify(left, right):
    assert compared(left, right, None)[0].equal
    assert compared(right, left, None)[0].equal


@pytest.mark.parametrize(("left", "right"), CHEAP_OTHER)
def test_other_answers_are_different_without_math_verify(left, right):
    assert not compared(left, right, None)[0].equal
    assert not compared(right, left, None)[0].equal


@pytest.mark.parametrize(("left", "right"), PROVEN_SAME)
def test_equal_expressions_are_proven_so(pool, left, right):
    assert compared(left, right, pool)[0].equal
    assert compared(right, left, pool)[0].equal


@pytest.mark.parametrize(("left", "right"), PROVEN_OTHER)
def test_different_expressions_are_different_and_no_failure(pool, left, right):
    for one, other in ((left, right), (right, left)):
        result, _ = compared(one, other, pool)
        assert (result.equal, result.problem) == (False, None)


def test_a_failed_comparison_is_not_equal_and_says_so():
    comparison = same_value("(1, x)", "(1, 2y)")
    assert next(comparison) == ("x", "2y")
    with pytest.raises(StopIteration) as finished:
        comparison.send("timeout")
    assert (finished.value.value.equal, finished.value.value.problem) == (False, "timeout")


def test_a_part_that_differs_for_sure_makes_a_failed_one_irrelevant():
    comparison = same_value("(x, 1)", "(2y, 2)")
    next(comparison)
    with pytest.raises(StopIteration) as finished:
        comparison.send("failed")
    assert (finished.value.value.equal, finished.value.value.problem) == (False, None)


def test_code_is_only_text():
    assert not compared("__import__('os').getcwd()", "0", ExpressionPool())[0].equal


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("zero", 0),
        ("twenty-five", 25),
        ("negative three", -3),
        ("one thousand two hundred and thirty-four", 1234),
        ("two million", 2_000_000),
        ("half", Fraction(1, 2)),
        ("a third", Fraction(1, 3)),
        ("two fifths", Fraction(2, 5)),
        ("five twenty", None),
        ("twenty twelve", None),
        ("ten men", None),
        ("and", None),
        ("minus", None),
        ("hundred", None),
        ("one or two", None),
        ("", None),
    ],
)
def test_words_are_a_number_only_where_they_spell_one(text, number):
    assert number_from_words(text) == number


def test_a_scale_word_multiplies_the_number_before_it():
    assert scale_word("1.5 million dollars") == ("1.5 dollars", 10**6)
    assert scale_word("a million") is None
    assert quantity_from("1.5 million dollars") == Quantity(value=Fraction(1_500_000), unit="$")


@pytest.mark.parametrize(
    ("text", "value", "name", "relation"),
    [
        ("3", "3", None, False),
        ("x = 3", "3", "x", False),
        ("f(x) = x+1", "x+1", "f(x)", False),
        ("(x, y) = (1, 2)", "(1, 2)", "(x, y)", False),
        ("y = (x+1)^2 = x^2+2x+1", "x^2+2x+1", "y", False),
        ("AB = 5", "5", "AB", False),
        ("x^2 = 49", "x^2 = 49", None, True),
        ("xy = 6", "xy = 6", None, True),
        ("2x = 6", "2x = 6", None, True),
        ("AB^2 = 25", "AB^2 = 25", None, True),
        ("x < 3", "x < 3", None, True),
        ("", "", None, False),
    ],
)
def test_a_name_before_a_value_is_told_from_an_equation(text, value, name, relation):
    found = named_from(text)
    assert (found.value, found.name, found.relation) == (value, name, relation)


def test_only_names_of_one_kind_can_differ():
    assert names_differ("x", "y")
    assert names_differ("f(x)", "g(x)")
    assert names_differ("x_1", "x_2")
    assert not names_differ("X", "x")
    assert not names_differ("y", "f(x)")
    assert not names_differ("Area", "A")
    assert not names_differ(None, "x")


def test_words_are_prose_and_functions_and_lines_are_not():
    assert all(is_prose(text) for text in ("increasing on (1,2)", "the end", "Bugs Bunny"))
    assert not any(is_prose(text) for text in ("sin x + cos y", "AB + BC", "36π", r"\frac{1}{2}", "xy"))
    assert is_label("Surface Area")
    assert not is_label("2x")


def test_a_list_is_split_outside_brackets_and_numbers():
    assert listed("1,234, 5") == ["1234", "5"]
    assert listed("(1,2), (3,4)") == ["(1,2)", "(3,4)"]
    assert listed("x = 1 or x = 2") == ["x = 1", "x = 2"]
    assert listed("red, green") == ["red, green"]


def test_a_unit_behind_an_expression_is_told_from_its_variables():
    assert without_unit("36\\pi cm ^{3}") == ("36\\pi", "cm^3")
    assert without_unit("3x") == ("3x", None)
    assert without_unit("45°") == ("45", "°")


def test_notation_and_latex_spell_one_expression_one_way():
    assert notation(r"\[ \dfrac{1}{2} \leq x \]") == r"\frac{1}{2} ≤ x"
    assert notation(r"\mathrm{a \text{b}} c") == "a b c"
    assert latex_from("3cos(2πx) ∪ sqrt(2)") == r"3\cos (2\pi x) \cup \sqrt{2}"
    assert latex_from("2pi + √7") == r"2\pi + \sqrt{7}"
