"""Mathematics in words, without a picture; our own."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from demo_items.puzzle import number_options

from demo_levels.item import Builder, Item, checked, text_options


def divisors(letter: str) -> Item:
    """How many divisors a number has; a free answer."""
    number, powers = 360, {2: 3, 3: 2, 5: 1}
    counted = sum(number % divisor == 0 for divisor in range(1, number + 1))
    return Item(
        question=f"How many positive divisors does {number} have?",
        answer=checked(counted, math.prod(power + 1 for power in powers.values()), "divisors"),
        hint="Write the number as a product of primes first.",
        explanation="360 is 2 times 2 times 2 times 3 times 3 times 5. A divisor takes some of these "
        "twos (from none to "
        "three), some of the threes and some of the fives. Multiply the numbers of choices.",
        request="give the prime factors, the choices for each of them, and their product.",
    )


def mean_speed(letter: str) -> Item:
    """A mean speed over two ways of one length."""
    way, there, back = 60, 30, 60
    speed = Fraction(2 * way, 1) / (Fraction(way, there) + Fraction(way, back))
    right = int(checked(speed, Fraction(2 * there * back, there + back), "mean speed"))
    return Item(
        question=f"Somebody rides {way} km at {there} km/h and comes back on the same road at {back} "
        "km/h. What is the mean "
        "speed of the whole ride, in km/h?",
        options=number_options(right, [45, 50, 90], letter),
        answer=letter,
        hint="The mean speed is the whole way divided by the whole time.",
        explanation="The two parts are equally long, but not equally slow: the way there takes 2 "
        "hours, the way back 1 hour. "
        "Divide the 120 km by all of these hours. The mean of the two speeds is something else.",
        request="calculate both times, and say why the mean of the two speeds is wrong.",
    )


def handshakes(letter: str) -> Item:
    """How many people there were; a free answer."""
    shakes = 66
    (people,) = [n for n in range(2, 100) if len(list(itertools.combinations(range(n), 2))) == shakes]
    return Item(
        question=f"At a party everybody shook hands once with everybody else. There were {shakes} "
        "handshakes. How many people "
        "were there?",
        answer=checked(people, (1 + math.isqrt(1 + 8 * shakes)) // 2, "people"),
        hint="With n people, how many hands does each of them shake?",
        explanation="Each of n people shakes n - 1 hands, and every handshake is then counted twice. "
        "So n times (n - 1) is "
        "132. Look for two neighbouring numbers with this product.",
        request="set up the equation for n, and solve it.",
    )


def last_remainder(letter: str) -> Item:
    """The remainder of a large power."""
    base, power, modulus = 7, 102, 5
    cycle = [base**n % modulus for n in range(1, 5)]
    right = int(checked(base**power % modulus, cycle[(power - 1) % 4], "remainder"))
    return Item(
        question=f"What is the remainder when {base} to the power of {power} is divided by {modulus}?",
        options=number_options(right, [1, 2, 3], letter),
        answer=letter,
        hint="Look at the remainders of the first few powers: they repeat.",
        explanation="The powers of 7 leave the remainders 2, 4, 3, 1 and then the same four again. "
        "Find out where in this "
        "cycle the power 102 stands: divide 102 by 4.",
        request="give the cycle of the remainders and the place of the power in it.",
    )


def odd_multiples(letter: str) -> Item:
    """A sum of certain numbers; a free answer."""
    total = sum(n for n in range(1, 101) if n % 3 == 0 and n % 2)
    n_terms = (99 - 3) // 6 + 1
    return Item(
        question="What is the sum of all numbers from 1 to 100 that are multiples of 3 and odd?",
        answer=checked(total, n_terms * (3 + 99) // 2, "sum"),
        hint="Write down the first few of these numbers: how far apart are they?",
        explanation="They are 3, 9, 15 and so on up to 99, always 6 further. Count them, then "
        "multiply their number by the "
        "mean of the first and the last.",
        request="say how many numbers there are, and how their sum follows.",
    )


def two_dice(letter: str) -> Item:
    """The chance of a sum of two dice."""
    wanted = 9
    hits = [pair for pair in itertools.product(range(1, 7), repeat=2) if sum(pair) == wanted]
    right = checked(Fraction(len(hits), 36), Fraction(6 - abs(wanted - 7), 36), "chance")
    return Item(
        question=f"Two fair dice are thrown. What is the chance that the sum is {wanted}?",
        options=text_options(right, ["1/12", "1/18", "5/36"], letter),
        answer=letter,
        hint="The two dice can be told apart: there are 36 cases, each as likely as the others.",
        explanation="List the pairs whose sum is 9: the first die can show 3, 4, 5 or 6, and each "
        "time the second one is then "
        "fixed. Divide their number by 36, and shorten the fraction.",
        request="list the pairs, and say why each order counts.",
    )


BUILDERS: tuple[Builder, ...] = (divisors, mean_speed, handshakes, last_remainder, odd_multiples, two_dice)
